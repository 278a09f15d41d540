// SPDX-License-Identifier: Apache-2.0
// Resamples one channel of an image.
#include "plugins/train/data/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster::train {
namespace {

/// Between which two pixels of an axis an output pixel lies.
struct Tap {
  int first;
  int second;
  float weight;  ///< of the second
};

std::vector<Tap> taps(double start, double length, int side, int pixels) {
  std::vector<Tap> taps(static_cast<size_t>(side));
  for (int i = 0; i < side; ++i) {
    const double at = std::clamp(start + (i + 0.5) * length / side - 0.5, 0.0, pixels - 1.0);
    const int first = static_cast<int>(at);
    taps[static_cast<size_t>(i)] = {first, std::min(first + 1, pixels - 1), static_cast<float>(at - first)};
  }
  return taps;
}

}  // namespace

void resizePlane(const Plane& plane, const Box& box, bool mirror, const ChannelMoments& moments, int side,
                 float* out) {
  const float scale = 1 / (255 * moments.sigma);
  const float shift = -moments.mean / moments.sigma;
  const std::vector<Tap> columns = taps(box.left, box.width, side, plane.width);
  const std::vector<Tap> rows = taps(box.top, box.height, side, plane.height);
  const auto row = [&](int y) { return plane.pixels + static_cast<int64_t>(y) * plane.width * plane.stride; };
  for (int y = 0; y < side; ++y) {
    const Tap& vertical = rows[static_cast<size_t>(y)];
    const uint8_t* upper = row(vertical.first);
    const uint8_t* lower = row(vertical.second);
    for (int x = 0; x < side; ++x) {
      const Tap& tap = columns[static_cast<size_t>(mirror ? side - 1 - x : x)];
      const auto blend = [&](const uint8_t* line) {
        const float a = line[static_cast<int64_t>(tap.first) * plane.stride];
        return a +
               tap.weight * (static_cast<float>(line[static_cast<int64_t>(tap.second) * plane.stride]) - a);
      };
      const float top = blend(upper);
      out[y * side + x] = (top + vertical.weight * (blend(lower) - top)) * scale + shift;
    }
  }
}

}  // namespace muster::train
