// SPDX-License-Identifier: Apache-2.0
// Lists classes and images of a directory and decodes them on demand.
#include "plugins/train/data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <vector>

#include "plugins/train/data/files/jpeg.h"
#include "plugins/train/data/resize.h"
#include "plugins/train/random.h"
#include "runner/system/files.h"

namespace muster::train {
namespace {

namespace fs = std::filesystem;

constexpr int kImageSize = 224;
constexpr double kCentre = 224.0 / 256;  ///< share of the shorter side that a test crop takes
constexpr int kTries = 10;
constexpr std::array<ChannelMoments, 3> kMoments = {{{0.485F, 0.229F}, {0.456F, 0.224F}, {0.406F, 0.225F}}};

struct Entry {
  uint32_t label;
  std::string file;  ///< relative to the split's folder
};

Box centre(const RgbImage& image) {
  const double side = std::min(image.width, image.height) * kCentre;
  return {(image.width - side) / 2, (image.height - side) / 2, side, side};
}

/// 8% to 100% of the area at an aspect from 3:4 to 4:3; the middle where none fits.
Box randomCrop(const RgbImage& image, uint64_t key) {
  const double area = static_cast<double>(image.width) * image.height;
  for (uint64_t i = 0; i < kTries; ++i) {
    const double part = area * (0.08 + 0.92 * uniform(mixKeys(key, 4 * i)));
    const double aspect = std::exp(std::log(4.0 / 3) * (2 * uniform(mixKeys(key, 4 * i + 1)) - 1));
    const double width = std::sqrt(part * aspect);
    const double height = std::sqrt(part / aspect);
    if (width > image.width || height > image.height) continue;
    return {(image.width - width) * uniform(mixKeys(key, 4 * i + 2)),
            (image.height - height) * uniform(mixKeys(key, 4 * i + 3)), width, height};
  }
  return centre(image);
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(fs::path folder, std::vector<Entry> entries, int classes, int side)
      : folder_(std::move(folder)), entries_(std::move(entries)), classes_(classes), side_(side) {}
  [[nodiscard]] std::string name() const override { return "images of " + folder_.string(); }
  [[nodiscard]] SampleShape shape() const override { return {3, side_, side_, 0}; }
  [[nodiscard]] int classes() const override { return classes_; }
  [[nodiscard]] uint64_t size() const override { return entries_.size(); }

  Status read(uint64_t index, uint64_t key, const SampleSink& sink) const override {
    const Entry& entry = entries_[index];
    // A random crop may be as small as a quarter of the image: it needs twice the pixels.
    MUSTER_TRY(RgbImage image, decodeJpeg(folder_ / entry.file, key != 0 ? 2 * side_ : side_));
    const Box box = key != 0 ? randomCrop(image, key) : centre(image);
    for (size_t c = 0; c < 3; ++c)
      resizePlane({image.pixels.data() + c, image.width, image.height, 3}, box, (key & 2) != 0, kMoments[c],
                  side_, sink.image + static_cast<ptrdiff_t>(c) * side_ * side_);
    *sink.labels = static_cast<int32_t>(entry.label);
    return {};
  }

 private:
  fs::path folder_;
  std::vector<Entry> entries_;
  int classes_;
  int side_;
};

bool isJpeg(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".jpg" || extension == ".jpeg";
}

/// Names in `folder` in order, those for which `wanted` holds.
Result<std::vector<std::string>> list(const fs::path& folder, bool (*wanted)(const fs::directory_entry&)) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (wanted(*it)) names.push_back(it->path().filename().string());
  if (error)
    return Error{error == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound : ErrorCode::kIo,
                 "cannot list the folder: " + error.message(), folder.string()};
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::string>> classNames(const fs::path& folder) {
  MUSTER_TRY(auto names, list(folder, [](const fs::directory_entry& entry) { return entry.is_directory(); }));
  if (names.empty())
    return Error{ErrorCode::kNotFound, "no folder of a class in it; expected <folder>/<class>/<image>.jpg",
                 folder.string()};
  return names;
}

Result<std::vector<Entry>> listImages(const fs::path& folder, const std::vector<std::string>& classes) {
  std::vector<Entry> entries;
  for (uint32_t label = 0; label < classes.size(); ++label) {
    const std::string& name = classes[label];
    MUSTER_TRY(auto files, list(folder / name, [](const fs::directory_entry& entry) {
                 return entry.is_regular_file() && isJpeg(entry.path());
               }));
    if (files.empty())
      return Error{ErrorCode::kNotFound, "no JPEG file of this class", (folder / name).string()};
    for (const std::string& file : files) entries.push_back({label, fmt::format("{}/{}", name, file)});
  }
  return entries;
}

fs::path splitFolder(const fs::path& root, Split split) {
  std::error_code ignored;
  if (split == Split::kTrain) return root / "train";
  return fs::is_directory(root / "val", ignored) ? root / "val" : root / "test";
}

}  // namespace

Result<std::unique_ptr<Dataset>> openImageFolder(const DatasetSpec& spec) {
  const fs::path root = spec.folder;
  const fs::path folder = splitFolder(root, spec.split);
  MUSTER_TRY(auto classes, classNames(splitFolder(root, Split::kTrain)));
  if (spec.split == Split::kTest) {
    MUSTER_TRY(auto own, classNames(folder));
    if (own != classes)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("its {} classes are not the {} of {}", own.size(), classes.size(),
                               splitFolder(root, Split::kTrain).string()),
                   folder.string()};
  }
  MUSTER_TRY(auto entries, listImages(folder, classes));
  return std::unique_ptr<Dataset>(
      std::make_unique<ImageFolder>(folder, std::move(entries), static_cast<int>(classes.size()),
                                    spec.imageSize > 0 ? spec.imageSize : kImageSize));
}

}  // namespace muster::train
