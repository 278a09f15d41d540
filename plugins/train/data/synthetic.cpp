// SPDX-License-Identifier: Apache-2.0
// See synthetic.h. A sample costs one multiplication and addition a pixel: its noise comes out of a bank.
#include "plugins/train/data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plugins/train/random.h"

namespace muster::train {
namespace {

constexpr int kLive = 16;  ///< classes that occur
constexpr int kGrid = 4;   ///< fields per side of a class's pattern
constexpr size_t kBank = 1 << 18;
constexpr float kPattern = 0.7F;
constexpr float kNoise = 0.7F;
constexpr uint64_t kAlphabet = 64;  ///< tokens that occur

class SyntheticImages : public Dataset {
 public:
  SyntheticImages(SampleShape shape, int classes, uint64_t size, uint64_t seed)
      : shape_(shape),
        classes_(classes),
        live_(std::min(classes, kLive)),
        size_(size),
        seed_(seed),
        bank_(kBank) {
    for (size_t i = 0; i < kBank; ++i) bank_[i] = kNoise * static_cast<float>(normal(mixKeys(seed, i)));
    fields_.resize(static_cast<size_t>(live_) * static_cast<size_t>(shape.channels * kGrid * kGrid));
    // Patterns do not depend on the split: what training shows is what a test asks.
    for (size_t i = 0; i < fields_.size(); ++i)
      fields_[i] = kPattern * static_cast<float>(normal(mixKeys(0x5e1f, i)));
  }
  [[nodiscard]] std::string name() const override { return "synthetic images"; }
  [[nodiscard]] SampleShape shape() const override { return shape_; }
  [[nodiscard]] int classes() const override { return classes_; }
  [[nodiscard]] uint64_t size() const override { return size_; }

  Status read(uint64_t index, uint64_t /*key*/, const SampleSink& sink) const override {
    const uint64_t draw = mixKeys(seed_ + 1, index);
    const auto label = static_cast<int>(draw % static_cast<uint64_t>(live_));
    size_t noise = (draw >> 20) % kBank;
    float* out = sink.image;
    for (int c = 0; c < shape_.channels; ++c)
      for (int y = 0; y < shape_.height; ++y) {
        const int row = (label * shape_.channels + c) * kGrid + y * kGrid / shape_.height;
        const float* fields = &fields_[static_cast<size_t>(row) * kGrid];
        for (int x = 0; x < shape_.width; ++x) {
          *out++ = fields[x * kGrid / shape_.width] + bank_[noise];
          noise = noise + 1 == kBank ? 0 : noise + 1;
        }
      }
    *sink.labels = label;
    return {};
  }

 private:
  SampleShape shape_;
  int classes_;
  int live_;
  uint64_t size_;
  uint64_t seed_;
  std::vector<float> bank_;
  std::vector<float> fields_;
};

class SyntheticTokens : public Dataset {
 public:
  SyntheticTokens(int tokens, int vocabulary, uint64_t size, uint64_t seed)
      : vocabulary_(vocabulary), size_(size), seed_(seed) {
    shape_.tokens = tokens;
  }
  [[nodiscard]] std::string name() const override { return "synthetic tokens"; }
  [[nodiscard]] SampleShape shape() const override { return shape_; }
  [[nodiscard]] int classes() const override { return vocabulary_; }
  [[nodiscard]] uint64_t size() const override { return size_; }

  Status read(uint64_t index, uint64_t /*key*/, const SampleSink& sink) const override {
    const uint64_t live = std::min(kAlphabet, static_cast<uint64_t>(vocabulary_));
    uint64_t draw = mixKeys(seed_ + 1, index);
    uint64_t token = draw % live;
    for (int i = 0; i < shape_.tokens; ++i) {
      sink.tokens[i] = static_cast<int32_t>(token);
      draw = mixKeys(draw, static_cast<uint64_t>(i));
      token = (draw >> 32) % 10 == 0 ? draw % live : (5 * token + 3) % live;
      sink.labels[i] = static_cast<int32_t>(token);
    }
    return {};
  }

 private:
  SampleShape shape_;
  int vocabulary_;
  uint64_t size_;
  uint64_t seed_;
};

}  // namespace

Result<std::unique_ptr<Dataset>> makeSynthetic(const DatasetSpec& spec) {
  const uint64_t natural = spec.split == Split::kTrain ? kSyntheticTrain : kSyntheticTest;
  const uint64_t size = spec.limit > 0 ? spec.limit : natural;
  const uint64_t seed = mixKeys(spec.seed, spec.split == Split::kTrain ? 11 : 12);
  if (spec.tokens > 0)
    return std::unique_ptr<Dataset>(std::make_unique<SyntheticTokens>(spec.tokens, spec.classes, size, seed));
  const int side = spec.imageSize > 0 ? spec.imageSize : 224;
  const int classes = spec.classes > 0 ? spec.classes : 1000;
  return std::unique_ptr<Dataset>(
      std::make_unique<SyntheticImages>(SampleShape{3, side, side, 0}, classes, size, seed));
}

}  // namespace muster::train
