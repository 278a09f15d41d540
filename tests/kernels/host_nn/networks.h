// SPDX-License-Identifier: Apache-2.0
// The small networks in which every layer is tried, at odd sizes.
#pragma once

#include "kernels/spec/network.h"

namespace muster::testing {

struct ConvolutionCase {
  const char* name;
  int64_t batch, inChannels, size, channels, kernel, stride, padding;
  int64_t stem = 0;  ///< channels of the convolution before it; 0: as many
  [[nodiscard]] int64_t first() const { return stem > 0 ? stem : channels; }
};
/// conv (with bias) -> conv -> pool: the first one's gradients prove the second one's gradient of its input.
Network plainNetwork(const ConvolutionCase& c);
/// The same with batch normalisation and ReLU.
Network normNetwork(const ConvolutionCase& c);

struct PoolCase {
  int64_t size, kernel, stride, padding;
  int64_t stem = 0;  ///< channels; 0: an odd number
};
Network poolNetwork(const PoolCase& c);

/// A bottleneck as in ResNets: two paths, one of them with a convolution of its own.
Network residualNetwork(int64_t batch, int64_t channels, bool project);
/// One tensor has more than two users.
Network manyUsersNetwork(int64_t channels);
Network linearNetwork(Activation activation, bool bias, int64_t width);
/// Rows of few numbers under a classifier of many classes.
Network wideClassifier(int64_t rows, int64_t width, int64_t classes);
Network transformer(int64_t batch, int64_t time, int64_t width, int64_t heads, bool causal);
/// More rows than one block of scores holds.
Network attentionNetwork(bool causal);

}  // namespace muster::testing
