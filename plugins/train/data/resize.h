// SPDX-License-Identifier: Apache-2.0
// Crops, scales, mirrors and normalises one channel of an image.
#pragma once

#include <cstdint>

namespace muster::train {

/// One channel of a byte image; `stride` bytes lie between two pixels of a row, rows follow each other.
struct Plane {
  const uint8_t* pixels;
  int width;
  int height;
  int stride;
};

/// A part of an image in pixels; fractions are fine.
struct Box {
  double left;
  double top;
  double width;
  double height;
};

/// Mean and standard deviation of a channel's values, scaled to 0..1.
struct ChannelMoments {
  float mean;
  float sigma;
};

/// Scales `box` to side x side by bilinear interpolation between pixel centres and writes (value / 255 -
/// mean) / sigma.
void resizePlane(const Plane& plane, const Box& box, bool mirror, const ChannelMoments& moments, int side,
                 float* out);

}  // namespace muster::train
