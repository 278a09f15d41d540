// SPDX-License-Identifier: Apache-2.0
// See jpeg.h. libjpeg reports through longjmp, so that no C++ object lives in the functions it may leave.
#include "plugins/train/data/files/jpeg.h"

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it first

#include <jerror.h>
#include <jpeglib.h>

#include <fmt/format.h>

#include <algorithm>

#include "runner/system/files.h"

namespace muster::train {
namespace {

constexpr uint64_t kLargestFile = 256U << 20;
constexpr uint64_t kLargestImage = 1U << 28;  ///< pixels
constexpr uint64_t kMostPixelsPerByte = 512;  ///< a Huffman code of one bit for a block of 8 x 8

/// libjpeg's error manager with the way out of it.
struct Trap {
  jpeg_error_mgr manager;
  jmp_buf out;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* trap = reinterpret_cast<Trap*>(info->err);
  // libjpeg quotes the first bytes of what is no JPEG, and a plan may name any file.
  if (info->err->msg_code == JERR_NO_SOI)
    std::snprintf(trap->text, sizeof(trap->text), "not a JPEG file");
  else
    info->err->format_message(info, trap->text);
  longjmp(trap->out, 1);
}

/// Warnings are damage that libjpeg would paint over, but for two that harm no pixel.
void judgeMessage(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR)
    return;
  leave(info);
}

/// A decompressor over bytes in memory.
struct Decoder {
  jpeg_decompress_struct info = {};
  Trap trap = {};
  uint64_t size = 0;

  Decoder() {
    info.err = jpeg_std_error(&trap.manager);
    trap.manager.error_exit = leave;
    trap.manager.emit_message = judgeMessage;
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  [[nodiscard]] uint64_t offset() const { return info.src == nullptr ? 0 : size - info.src->bytes_in_buffer; }

  bool readHeader(const std::string& file, int shortest) {
    if (setjmp(trap.out) != 0) return false;
    jpeg_create_decompress(&info);
    size = file.size();
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, TRUE);
    const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    const auto side = static_cast<int64_t>(std::min(info.image_width, info.image_height));
    info.scale_denom = 8;
    while (info.scale_denom > 1 && side / info.scale_denom < shortest) info.scale_denom /= 2;
    jpeg_calc_output_dimensions(&info);
    return true;
  }

  bool readPixels(uint8_t* out, size_t rowBytes) {
    if (setjmp(trap.out) != 0) return false;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      uint8_t* row = out + info.output_scanline * rowBytes;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    return true;
  }
};

/// CMYK as Adobe writes it (inverted) to RGB, in place.
void cmykToRgb(std::vector<uint8_t>& pixels) {
  size_t out = 0;
  for (size_t in = 0; in + 3 < pixels.size(); in += 4)
    for (size_t c = 0; c < 3; ++c)
      pixels[out++] = static_cast<uint8_t>(pixels[in + c] * static_cast<unsigned>(pixels[in + 3]) / 255);
  pixels.resize(out);
}

/// A header may promise any size: what memory is taken for has to be in the file.
bool fitsIn(const jpeg_decompress_struct& info, uint64_t bytes) {
  const uint64_t pixels = static_cast<uint64_t>(info.image_width) * info.image_height;
  return info.arith_code != 0 || pixels / kMostPixelsPerByte <= bytes;
}

Error damaged(const std::filesystem::path& path, const Decoder& decoder) {
  return {ErrorCode::kCorrupt,
          fmt::format("an incomplete JPEG image: at byte {} of {}: {}; fetch the file again",
                      decoder.offset(), decoder.size, decoder.trap.text),
          path.string()};
}

}  // namespace

Result<RgbImage> decodeJpeg(const std::filesystem::path& path, int shortest) {
  MUSTER_TRY(std::string file, readFile(path, kLargestFile));
  Decoder decoder;
  if (!decoder.readHeader(file, shortest)) return damaged(path, decoder);
  const auto& info = decoder.info;
  if (static_cast<uint64_t>(info.output_width) * info.output_height > kLargestImage ||
      !fitsIn(info, file.size()))
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("an image of {} x {} pixels is larger than any data set has, or than {} bytes can "
                    "hold; fetch the file again",
                    info.image_width, info.image_height, file.size()),
        path.string()};
  RgbImage image{static_cast<int>(info.output_width), static_cast<int>(info.output_height), {}};
  const size_t rowBytes =
      static_cast<size_t>(info.output_width) * static_cast<size_t>(info.out_color_components);
  image.pixels.resize(rowBytes * info.output_height);
  if (!decoder.readPixels(image.pixels.data(), rowBytes)) return damaged(path, decoder);
  if (info.out_color_space == JCS_CMYK) cmykToRgb(image.pixels);
  return image;
}

}  // namespace muster::train
