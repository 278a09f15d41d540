// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG files (libjpeg-turbo).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "runner/core/result.h"

namespace muster::train {

/// An image as RGB bytes, interleaved.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;
};

/// Decodes a file; grey and CMYK become RGB. The image may come out smaller by 2, 4 or 8 as long as its
/// shorter side keeps `shortest` pixels: the decoder saves most of its work so. Damage of any kind is an
/// error that names file and offset; libjpeg itself would fill in grey.
Result<RgbImage> decodeJpeg(const std::filesystem::path& path, int shortest);

}  // namespace muster::train
