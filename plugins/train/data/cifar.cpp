// SPDX-License-Identifier: Apache-2.0
// See cifar.h. A record is its labels (one byte; CIFAR-100: a coarse and a fine one) and 3 x 32 x 32 bytes,
// planar.
#include "plugins/train/data/cifar.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "plugins/train/data/memory_images.h"
#include "runner/system/files.h"

namespace muster::train {
namespace {

constexpr size_t kPixels = static_cast<size_t>(3) * 32 * 32;
constexpr uint64_t kLargest = 512U << 20;

struct Form {
  const char* folder;
  int classes;
  size_t labelBytes;
  std::vector<std::string> train;
  std::string test;
  std::array<ChannelMoments, 3> moments;
};

Form formOf(const std::string& mode) {
  if (mode == "cifar10")
    return {
        "cifar-10-batches-bin",
        10,
        1,
        {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
        "test_batch.bin",
        {{{0.4914F, 0.2470F}, {0.4822F, 0.2435F}, {0.4465F, 0.2616F}}}};
  return {"cifar-100-binary", 100,        2,
          {"train.bin"},      "test.bin", {{{0.5071F, 0.2673F}, {0.4865F, 0.2564F}, {0.4409F, 0.2762F}}}};
}

Status append(const std::filesystem::path& path, const Form& form, ImageStore& store) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return Error{ErrorCode::kNotFound, "no such file; give data_dir, or set download = true", path.string()};
  MUSTER_TRY(std::string content, readFile(path, kLargest));
  const size_t record = form.labelBytes + kPixels;
  if (content.empty() || content.size() % record != 0)
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("at byte {}: it has {} bytes, not a multiple of a record's {}; it is truncated, fetch it "
                    "again",
                    content.size() / record * record, content.size(), record),
        path.string()};
  for (size_t at = 0; at < content.size(); at += record) {
    const size_t labelAt = at + form.labelBytes - 1;
    const auto label = static_cast<uint8_t>(content[labelAt]);
    if (label >= form.classes)
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("at byte {}: no label from 0 to {}; fetch the file again", labelAt, form.classes - 1),
          path.string()};
    store.labels.push_back(label);
    const auto pixels = content.begin() + static_cast<int64_t>(labelAt + 1);
    store.pixels.insert(store.pixels.end(), pixels, pixels + kPixels);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Dataset>> openCifar(const DatasetSpec& spec) {
  const Form form = formOf(spec.mode);
  std::filesystem::path folder = spec.folder;
  std::error_code ignored;
  if (std::filesystem::is_directory(folder / form.folder, ignored)) folder /= form.folder;
  ImageStore store;
  store.name = fmt::format("{} {} ({})", spec.mode, splitName(spec.split), folder.string());
  store.classes = form.classes;
  store.channels = 3;
  store.side = 32;
  store.moments = form.moments;
  const auto files = spec.split == Split::kTrain ? form.train : std::vector<std::string>{form.test};
  for (const std::string& file : files) MUSTER_CHECK_OK(append(folder / file, form, store));
  return makeMemoryImages(std::move(store), spec.imageSize);
}

}  // namespace muster::train
