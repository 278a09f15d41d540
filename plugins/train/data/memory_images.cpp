// SPDX-License-Identifier: Apache-2.0
// Converts images held in memory to normalised samples.
#include "plugins/train/data/memory_images.h"

#include <algorithm>

#include "plugins/train/random.h"

namespace muster::train {
namespace {

constexpr int kCanvas = 32;

class MemoryImages : public Dataset {
 public:
  MemoryImages(ImageStore store, int side) : store_(std::move(store)), side_(side) {}
  [[nodiscard]] std::string name() const override { return store_.name; }
  [[nodiscard]] SampleShape shape() const override { return {3, side_, side_, 0}; }
  [[nodiscard]] int classes() const override { return store_.classes; }
  [[nodiscard]] uint64_t size() const override { return store_.labels.size(); }

  Status read(uint64_t index, uint64_t key, const SampleSink& sink) const override {
    std::array<uint8_t, static_cast<size_t>(3)* kCanvas* kCanvas> canvas = {};
    place(index, key, canvas.data());
    for (int c = 0; c < 3; ++c) {
      const int stored = std::min(c, store_.channels - 1);
      const auto channel = static_cast<size_t>(stored);
      const Plane plane = {canvas.data() + channel * kCanvas * kCanvas, kCanvas, kCanvas, 1};
      resizePlane(plane, {0, 0, kCanvas, kCanvas}, (key & 2) != 0, store_.moments[channel], side_,
                  sink.image + static_cast<ptrdiff_t>(c) * side_ * side_);
    }
    *sink.labels = store_.labels[index];
    return {};
  }

 private:
  /// Copies the image to the middle of the canvas, or beside it by as much as `key` says.
  void place(uint64_t index, uint64_t key, uint8_t* canvas) const {
    const int side = store_.side;
    const int middle = (kCanvas - side) / 2;
    const int span = 2 * store_.shift + 1;
    const auto draw = [&](uint64_t which) {
      return static_cast<int>(below(mixKeys(key, which), static_cast<uint64_t>(span))) - store_.shift;
    };
    const int top = middle + (key != 0 ? draw(1) : 0);
    const int left = middle + (key != 0 ? draw(2) : 0);
    const int firstX = std::max(0, -left);
    const int lastX = std::min(side, kCanvas - left);
    const uint8_t* image =
        store_.pixels.data() + index * static_cast<uint64_t>(store_.channels * side * side);
    for (int c = 0; c < store_.channels; ++c)
      for (int y = std::max(0, -top); y < std::min(side, kCanvas - top); ++y)
        std::copy_n(image + static_cast<ptrdiff_t>(c * side + y) * side + firstX, lastX - firstX,
                    canvas + static_cast<ptrdiff_t>(c * kCanvas + y + top) * kCanvas + left + firstX);
  }

  ImageStore store_;
  int side_;
};

}  // namespace

std::unique_ptr<Dataset> makeMemoryImages(ImageStore store, int imageSize) {
  return std::make_unique<MemoryImages>(std::move(store), imageSize > 0 ? imageSize : kCanvas);
}

}  // namespace muster::train
