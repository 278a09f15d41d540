// SPDX-License-Identifier: Apache-2.0
// Small images that are all held in memory: what FashionMNIST and CIFAR have in common.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "plugins/train/data/dataset.h"
#include "plugins/train/data/resize.h"

namespace muster::train {

/// Images of one size as bytes, planar, one after the other.
struct ImageStore {
  std::string name;
  int classes = 0;
  int channels = 1;  ///< stored: 1 (grey, given out three times) or 3
  int side = 28;     ///< stored, pixels
  int shift = 4;     ///< augmentation: maximum shift in pixels, and mirroring
  std::array<ChannelMoments, 3> moments = {};
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
};

/// Gives out 3 x S x S, where S is 32 (28 in the middle of black), or `imageSize` by bilinear interpolation.
std::unique_ptr<Dataset> makeMemoryImages(ImageStore store, int imageSize);

}  // namespace muster::train
