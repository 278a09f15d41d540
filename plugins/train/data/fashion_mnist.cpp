// SPDX-License-Identifier: Apache-2.0
// See fashion_mnist.h. IDX: a magic number, the sizes as 32-bit big-endian numbers, the bytes.
#include "plugins/train/data/fashion_mnist.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "plugins/train/data/files/gzip.h"
#include "plugins/train/data/memory_images.h"

namespace muster::train {
namespace {

constexpr uint64_t kLargest = 256U << 20;  ///< bytes; the real ones have 47 MB
constexpr int kSide = 28;
constexpr int kClasses = 10;

struct IdxFile {
  std::filesystem::path path;
  std::string content;
  size_t header = 0;
  uint32_t count = 0;
};

uint32_t bigEndian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

Error damaged(const std::filesystem::path& path, size_t offset, const std::string& what) {
  return {ErrorCode::kCorrupt, fmt::format("at byte {}: {}; fetch the file again", offset, what),
          path.string()};
}

/// Reads `name`, or `name`.gz, and checks its header: unsigned bytes in `sizes` dimensions, all but the first
/// given.
Result<IdxFile> readIdx(const std::filesystem::path& folder, const std::string& name,
                        const std::vector<uint32_t>& inner) {
  IdxFile file;
  std::error_code ignored;
  file.path = folder / name;
  if (!std::filesystem::exists(file.path, ignored)) file.path += ".gz";
  if (!std::filesystem::exists(file.path, ignored))
    return Error{
        ErrorCode::kNotFound,
        fmt::format("no {} and no {}.gz there; apt-get install dataset-fashion-mnist, give data_dir, or set "
                    "download = true",
                    name, name),
        folder.string()};
  MUSTER_TRY(file.content, readMaybeGzip(file.path, kLargest));
  file.header = 4 + 4 * (inner.size() + 1);
  if (file.content.size() < file.header)
    return damaged(file.path, file.content.size(),
                   fmt::format("it ends inside its header of {} bytes", file.header));
  const uint32_t magic = bigEndian(file.content, 0);
  const auto wanted = static_cast<uint32_t>(0x0800 + inner.size() + 1);
  if (magic != wanted)
    // What it is instead is left out: a plan may name any file.
    return damaged(file.path, 0, fmt::format("the magic number is not {:#010x}", wanted));
  file.count = bigEndian(file.content, 4);
  uint64_t bytes = file.count;
  for (size_t i = 0; i < inner.size(); ++i) {
    const uint32_t size = bigEndian(file.content, 8 + 4 * i);
    if (size != inner[i])
      return damaged(file.path, 8 + 4 * i,
                     fmt::format("dimension {} is {}, expected {}", i + 1, size, inner[i]));
    bytes *= size;
  }
  if (file.content.size() != file.header + bytes)
    return damaged(file.path, std::min<uint64_t>(file.content.size(), file.header + bytes),
                   fmt::format("it has {} bytes, and {} items need {}", file.content.size(), file.count,
                               file.header + bytes));
  return file;
}

Status checkLabels(const IdxFile& labels) {
  for (size_t i = labels.header; i < labels.content.size(); ++i)
    if (static_cast<unsigned char>(labels.content[i]) >= kClasses)
      return damaged(labels.path, i, fmt::format("no label from 0 to {}", kClasses - 1));
  return {};
}

}  // namespace

Result<std::unique_ptr<Dataset>> openFashionMnist(const DatasetSpec& spec) {
  const std::filesystem::path folder = spec.folder.empty() ? kDebianFashionMnist : spec.folder;
  const std::string prefix = spec.split == Split::kTrain ? "train" : "t10k";
  MUSTER_TRY(IdxFile images, readIdx(folder, prefix + "-images-idx3-ubyte", {kSide, kSide}));
  MUSTER_TRY(IdxFile labels, readIdx(folder, prefix + "-labels-idx1-ubyte", {}));
  if (images.count != labels.count)
    return damaged(
        labels.path, 4,
        fmt::format("{} labels for the {} images of {}", labels.count, images.count, images.path.string()));
  if (images.count == 0) return damaged(images.path, 4, "it holds no image");
  MUSTER_CHECK_OK(checkLabels(labels));
  ImageStore store;
  store.name = fmt::format("fashion-mnist {} ({})", splitName(spec.split), folder.string());
  store.classes = kClasses;
  store.side = kSide;
  store.shift = 2;
  store.moments[0] = {0.2860F, 0.3530F};
  store.pixels.assign(images.content.begin() + static_cast<int64_t>(images.header), images.content.end());
  store.labels.assign(labels.content.begin() + static_cast<int64_t>(labels.header), labels.content.end());
  return makeMemoryImages(std::move(store), spec.imageSize);
}

}  // namespace muster::train
