// SPDX-License-Identifier: Apache-2.0
// From the name of a data set to an open one.
#include <fmt/format.h>

#include "plugins/train/data/cifar.h"
#include "plugins/train/data/dataset.h"
#include "plugins/train/data/fashion_mnist.h"
#include "plugins/train/data/image_folder.h"
#include "plugins/train/data/subset.h"
#include "plugins/train/data/synthetic.h"

namespace muster::train {
namespace {

Error needsFolder(const DatasetSpec& spec) {
  return {
      ErrorCode::kUsage,
      fmt::format("data_mode \"{}\" needs data_dir, the directory that holds it; or download = true and a "
                  "folder to download into",
                  spec.mode),
      "data_dir"};
}

Result<std::unique_ptr<Dataset>> openImages(const DatasetSpec& spec) {
  if (spec.mode == "fashion-mnist") return openFashionMnist(spec);
  if (spec.folder.empty()) return needsFolder(spec);
  if (spec.mode == "cifar10" || spec.mode == "cifar100") return openCifar(spec);
  if (spec.mode == "imagenet") return openImageFolder(spec);
  return Error{ErrorCode::kUsage, "there is no data_mode \"" + spec.mode + "\"", "data_mode"};
}

}  // namespace

const char* splitName(Split split) {
  return split == Split::kTrain ? "train" : "test";
}

uint64_t nominalSize(const DatasetSpec& spec) {
  const bool train = spec.split == Split::kTrain;
  if (spec.limit > 0) return spec.limit;
  if (spec.mode == "fashion-mnist") return train ? 60000 : 10000;
  if (spec.mode == "cifar10" || spec.mode == "cifar100") return train ? 50000 : 10000;
  return train ? kSyntheticTrain : kSyntheticTest;
}

Result<std::unique_ptr<Dataset>> openDataset(const DatasetSpec& spec) {
  if (spec.mode == "synthetic") return makeSynthetic(spec);
  if (spec.tokens > 0)
    return Error{
        ErrorCode::kUsage,
        fmt::format("data_mode \"{}\" holds images, and this model reads tokens; use synthetic", spec.mode),
        "data_mode"};
  MUSTER_TRY(std::unique_ptr<Dataset> images, openImages(spec));
  if (spec.classes > 0 && images->classes() > spec.classes)
    return Error{ErrorCode::kUsage,
                 fmt::format("{} has {} classes and num_classes is {}; raise it to {} or leave it 0",
                             images->name(), images->classes(), spec.classes, images->classes()),
                 "num_classes"};
  return limitTo(std::move(images), spec.limit);
}

}  // namespace muster::train
