// SPDX-License-Identifier: Apache-2.0
// What a training run reads: samples by number. Every source of data implements this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runner/core/result.h"

namespace muster::train {

enum class Split { kTrain, kTest };
const char* splitName(Split split);  ///< train, test

/// Geometry of one sample: an image, or `tokens` token numbers where that is not 0.
struct SampleShape {
  int channels = 0;
  int height = 0;
  int width = 0;
  int tokens = 0;

  [[nodiscard]] size_t pixels() const {
    return static_cast<size_t>(channels) * static_cast<size_t>(height) * static_cast<size_t>(width);
  }
  /// A label each for an image, one a token for text.
  [[nodiscard]] size_t labels() const { return tokens > 0 ? static_cast<size_t>(tokens) : 1; }
};

/// Where one sample goes. `image` is f32 [channels, height, width], normalised; `tokens` and `labels` as
/// SampleShape says. Pointers that the shape does not need may be null.
struct SampleSink {
  float* image = nullptr;
  int32_t* tokens = nullptr;
  int32_t* labels = nullptr;
};

/// A data set, open and checked. Its samples are pure functions of their number and of `key`.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< for errors and reports: "fashion-mnist train"
  [[nodiscard]] virtual SampleShape shape() const = 0;
  [[nodiscard]] virtual int classes() const = 0;  ///< labels are from 0 up to here; tokens likewise
  [[nodiscard]] virtual uint64_t size() const = 0;
  /// Writes sample `index`; `key` decides random crops and flips (0: none). Several threads call it at once.
  virtual Status read(uint64_t index, uint64_t key, const SampleSink& sink) const = 0;
};

/// Which data set to open.
struct DatasetSpec {
  std::string mode = "synthetic";  ///< synthetic, fashion-mnist, cifar10, cifar100, imagenet
  std::string folder;              ///< empty: where Debian's packages put it, for those that have one
  Split split = Split::kTrain;
  int classes = 0;     ///< that the model tells apart; more in the data are an error. 0: as the data has
  int imageSize = 0;   ///< pixels; 0: 224 for synthetic and imagenet, 32 for the others
  int tokens = 0;      ///< synthetic: length of a sequence; 0: images
  uint64_t limit = 0;  ///< number of samples to use, spread over all; 0: all
  uint64_t seed = 0;   ///< synthetic: of everything
};

/// Samples of the data set as it is published, for those who simulate it; `limit` if that is given.
uint64_t nominalSize(const DatasetSpec& spec);

/// Opens the data set. What is missing, cut short or damaged is an error that names file and offset; nothing
/// else is ever put in its place.
Result<std::unique_ptr<Dataset>> openDataset(const DatasetSpec& spec);

}  // namespace muster::train
