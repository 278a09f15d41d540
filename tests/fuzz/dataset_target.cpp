// SPDX-License-Identifier: Apache-2.0
// Files of data sets that nobody can trust: CIFAR, FashionMNIST (plain and gzipped), JPEG, tar.
#include <cstdio>  // jpeglib.h needs it first

#include <jpeglib.h>

#include <fmt/format.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "plugins/train/data/dataset.h"
#include "plugins/train/data/files/jpeg.h"
#include "plugins/train/data/files/tar.h"
#include "tests/fuzz/targets.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using train::Dataset;
using train::DatasetSpec;

constexpr size_t kCifarPixels = static_cast<size_t>(3) * 32 * 32;
constexpr size_t kMnistPixels = static_cast<size_t>(28) * 28;
constexpr size_t kBlock = 512;  ///< of a tar archive

const fs::path& workFolder() {
  static const TempDir kFolder;
  return kFolder.path();
}

void put(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  fs::remove(path);  // some file systems write at once what replaces a file's content: a hundred times slower
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(content.data(), 1, content.size(), file) != content.size()) std::abort();
  std::fclose(file);
}

/// Every sample of a data set that could be opened can be read, and is what its shape says.
std::string checkSamples(const Dataset& data) {
  std::vector<float> pixels(data.shape().pixels());
  for (uint64_t i = 0; i < data.size(); ++i) {
    int32_t label = -1;
    if (Status read = data.read(i, i, {pixels.data(), nullptr, &label}); !read.ok())
      return "a sample of an open data set cannot be read: " + read.error().text();
    if (label < 0 || label >= data.classes()) return fmt::format("a sample has label {}", label);
    for (const float pixel : pixels)
      if (!std::isfinite(pixel)) return "a pixel is no number";
  }
  return "";
}

/// `good`: whether the file is one by its own definition.
std::string checkDataset(const DatasetSpec& spec, bool good, uint64_t samples) {
  const auto data = train::openDataset(spec);
  if (data.ok() != good)
    return good ? "a good file is refused: " + data.error().text() : "a damaged file is accepted";
  if (!good)
    return data.error().code == ErrorCode::kCorrupt
               ? problemOfError(data.error())
               : "damage goes under another name: " + data.error().text();
  return (*data)->size() == samples ? checkSamples(**data) : "samples are missing";
}

std::string bigEndian(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string mnistImages() {
  return bigEndian(0x803) + bigEndian(2) + bigEndian(28) + bigEndian(28) +
         std::string(2 * kMnistPixels, '\x40');
}

std::string mnistLabels() {
  return bigEndian(0x801) + bigEndian(2) + std::string("\x03\x09");
}

std::string gzipped(const std::string& content) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string out(deflateBound(&stream, content.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Whether these are two images, or labels, of the 28 x 28 and 10 kinds that FashionMNIST has.
bool isGoodMnist(const std::string& file, bool images) {
  const std::string head = (images ? mnistImages() : mnistLabels()).substr(0, images ? 16 : 8);
  if (file.size() != head.size() + (images ? 2 * kMnistPixels : 2) || file.rfind(head, 0) != 0) return false;
  return images || (static_cast<unsigned char>(file[8]) < 10 && static_cast<unsigned char>(file[9]) < 10);
}

std::string jpeg(int width, int height, J_COLOR_SPACE space, int components, bool progressive) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = components;
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(width * components));
  while (info.next_scanline < info.image_height) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<uint8_t>(i * 37 + info.next_scanline * 11);
    uint8_t* line = row.data();
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(data), size);
  free(data);
  return file;
}

/// A member of a tar archive, padded, under a header whose checksum is right.
std::string tarMember(const std::string& name, const std::string& content, char type = '0') {
  std::string head = name + std::string(100 - name.size(), '\0') + "0000644" + '\0' + "0000000" + '\0' +
                     "0000000" + '\0' + fmt::format("{:011o} ", content.size()) + "00000000000 " +
                     "        " + type;
  head.resize(kBlock, '\0');
  unsigned sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  head.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return head + content + std::string((kBlock - content.size() % kBlock) % kBlock, '\0');
}

}  // namespace

std::string checkCifar(const std::string& bytes) {
  if (bytes.empty()) return "";
  const bool ten = bytes[0] % 2 == 0;
  const std::string content = bytes.substr(1);
  const size_t labels = ten ? 1 : 2, record = labels + kCifarPixels;
  bool good = !content.empty() && content.size() % record == 0;
  for (size_t at = labels - 1; good && at < content.size(); at += record)
    good = static_cast<unsigned char>(content[at]) < (ten ? 10 : 100);
  DatasetSpec spec;
  spec.mode = ten ? "cifar10" : "cifar100";
  spec.folder = (workFolder() / spec.mode).string();
  spec.split = train::Split::kTest;
  put(fs::path(spec.folder) / (ten ? "test_batch.bin" : "test.bin"), content);
  return checkDataset(spec, good, content.size() / record);
}

Samples cifarSamples() {
  // The last two have a label that is one too large.
  const std::string pixels(kCifarPixels, '\x55');
  return {{"0" + ("\x03" + pixels) + "\x09" + pixels, "1" + ("\x13\x63" + pixels), "0" + ("\x0a" + pixels),
           "1" + ("\x13\x64" + pixels)},
          {std::string(1, '\0'), "\xff", pixels, "\x04" + pixels, "\x13\x20" + pixels}};
}

std::string checkFashionMnist(const std::string& bytes) {
  if (bytes.empty()) return "";
  const bool images = bytes[0] % 2 == 0, zipped = (bytes[0] / 2) % 2 == 1;
  const std::string content = bytes.substr(1);
  DatasetSpec spec;
  spec.mode = "fashion-mnist";
  spec.folder = (workFolder() / "mnist").string();
  spec.split = train::Split::kTest;
  const fs::path folder = spec.folder;
  for (const char* name : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) fs::remove(folder / name);
  const std::string extension = zipped ? ".gz" : "";
  put(folder / ("t10k-images-idx3-ubyte" + (images ? extension : "")), images ? content : mnistImages());
  put(folder / ("t10k-labels-idx1-ubyte" + (images ? "" : extension)), images ? mnistLabels() : content);
  // A file that does not begin as a gzip file is read as it is, whatever its name.
  if (content.rfind("\x1f\x8b", 0) != 0) return checkDataset(spec, isGoodMnist(content, images), 2);
  const auto data = train::openDataset(spec);
  return data.ok() ? checkSamples(**data) : problemOfError(data.error());
}

Samples fashionMnistSamples() {
  return {
      {"0" + mnistImages(), "1" + mnistLabels(), "2" + gzipped(mnistImages()), "3" + gzipped(mnistLabels())},
      {bigEndian(0xffffffff), bigEndian(0), bigEndian(28), bigEndian(0x803), "\x0a", "\x1f\x8b\x08",
       gzipped("x"), gzipped(std::string(1 << 20, 'x'))}};
}

std::string checkJpeg(const std::string& bytes) {
  const fs::path path = workFolder() / "image.jpg";
  put(path, bytes);
  for (const int shortest : {1, 64}) {
    const auto image = train::decodeJpeg(path, shortest);
    if (!image.ok()) {
      if (image.error().code != ErrorCode::kCorrupt)
        return "damage goes under another name: " + image.error().text();
      if (std::string problem = problemOfError(image.error()); !problem.empty()) return problem;
      continue;
    }
    const bool fits =
        image->width > 0 && image->height > 0 &&
        image->pixels.size() == static_cast<size_t>(image->width) * static_cast<size_t>(image->height) * 3;
    if (!fits)
      return fmt::format("an image of {} x {} has {} bytes", image->width, image->height,
                         image->pixels.size());
  }
  return "";
}

Samples jpegSamples() {
  return {
      {jpeg(40, 30, JCS_RGB, 3, false), jpeg(64, 64, JCS_RGB, 3, true), jpeg(9, 9, JCS_GRAYSCALE, 1, false),
       jpeg(16, 8, JCS_CMYK, 4, false), jpeg(300, 200, JCS_RGB, 3, true)},
      {"\xff\xd8", "\xff\xd9", "\xff\xc0", "\xff\xc2", "\xff\xc4", "\xff\xda", "\xff\xd0",
       std::string("\xff\xdd\x00\x04\x00\x01", 6), "\xff\xff", std::string("\xff\x00", 2),
       std::string(4, '\0'), std::string("\x00\x11\x08\xff\xdc\xff\xdc", 7),
       std::string("\x00\x11\x08\x40\x00\x40\x00", 7)}};
}

std::string checkTar(const std::string& bytes) {
  const fs::path root = workFolder() / "tar", folder = root / "out";
  fs::remove_all(root);
  put(root / "in.tar", bytes);
  fs::create_directories(folder);
  const std::vector<std::string> names = {"train.bin", "test.bin"};
  const Status taken = train::extractFiles(root / "in.tar", names, folder);
  size_t made = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path() == root / "in.tar") continue;
    if (entry.path() != folder / names[0] && entry.path() != folder / names[1])
      return "it wrote to " + entry.path().string();
    ++made;
  }
  if (taken.ok()) return made == names.size() ? "" : "a file that it took is not there";
  return taken.error().code == ErrorCode::kCorrupt
             ? problemOfError(taken.error())
             : "damage goes under another name: " + taken.error().text();
}

Samples tarSamples() {
  const std::string train = tarMember("cifar-100-binary/train.bin", std::string(700, 't'));
  const std::string test = tarMember("cifar-100-binary/test.bin", "t");
  const std::string end(2 * kBlock, '\0');
  const std::string escape = tarMember("../../train.bin", "x"), link = tarMember("test.bin", "", '2'),
                    strange = tarMember("/tmp/x", "x");
  return {{train + test + end, escape + test + end, link + strange + train + test + end,
           gzipped(train + test + end)},
          {train, test, escape, link, end, "77777777777 ", "../", "/", std::string(1, '\0'), "\xff"}};
}

}  // namespace muster::testing
