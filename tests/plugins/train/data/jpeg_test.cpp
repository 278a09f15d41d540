// SPDX-License-Identifier: Apache-2.0
// JPEG files and folders of them: colours, sizes, and damage that libjpeg would paint over.
#include "plugins/train/data/files/jpeg.h"

#include <jpeglib.h>
#include <cstdio>  // jpeglib.h needs it first

#include <gmock/gmock.h>

#include <cstdlib>

#include "plugins/train/data/dataset.h"
#include "tests/support/process.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

/// A JPEG of one colour.
std::string jpegOf(int width, int height, J_COLOR_SPACE space, const std::vector<uint8_t>& colour) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = static_cast<int>(colour.size());
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row;
  for (int x = 0; x < width; ++x) row.insert(row.end(), colour.begin(), colour.end());
  uint8_t* line = row.data();
  while (info.next_scanline < info.image_height) jpeg_write_scanlines(&info, &line, 1);
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(data), size);
  free(data);
  return file;
}

std::string red(int width, int height) {
  return jpegOf(width, height, JCS_RGB, {255, 0, 0});
}

TEST(Jpeg, DecodesColourGreyAndInvertedCmyk) {
  const testing::TempDir folder;
  auto colour = decodeJpeg(folder.write("a.jpg", red(40, 30)), 30);
  ASSERT_TRUE(colour.ok()) << colour.error().text();
  EXPECT_EQ(colour->width, 40);
  EXPECT_EQ(colour->height, 30);
  ASSERT_EQ(colour->pixels.size(), 40u * 30 * 3);
  EXPECT_NEAR(colour->pixels[0], 254, 3);
  EXPECT_NEAR(colour->pixels[1], 0, 3);
  auto grey = decodeJpeg(folder.write("b.jpg", jpegOf(9, 9, JCS_GRAYSCALE, {128})), 9);
  ASSERT_TRUE(grey.ok());
  EXPECT_NEAR(grey->pixels[5], 128, 2);
  auto cmyk = decodeJpeg(folder.write("c.jpg", jpegOf(9, 9, JCS_CMYK, {255, 0, 0, 255})), 9);
  ASSERT_TRUE(cmyk.ok()) << cmyk.error().text();
  ASSERT_EQ(cmyk->pixels.size(), 9u * 9 * 3);
  EXPECT_NEAR(cmyk->pixels[0], 255, 4);
  EXPECT_NEAR(cmyk->pixels[2], 0, 4);
}

TEST(Jpeg, KeepsAtLeastTheShortestSideThatIsAskedFor) {
  const testing::TempDir folder;
  const auto path = folder.write("a.jpg", red(400, 300));
  EXPECT_EQ(decodeJpeg(path, 300)->height, 300);
  EXPECT_EQ(decodeJpeg(path, 150)->height, 150);
  EXPECT_EQ(decodeJpeg(path, 149)->height, 150);
  EXPECT_EQ(decodeJpeg(path, 10)->width, 50);
}

TEST(Jpeg, NamesFileAndOffsetOfDamage) {
  const testing::TempDir folder;
  const std::string whole = red(200, 200);
  for (size_t kept : {whole.size() - 2, whole.size() * 3 / 4, size_t{300}, size_t{3}, size_t{0}}) {
    const auto image = decodeJpeg(folder.write("cut.jpg", whole.substr(0, kept)), 200);
    ASSERT_FALSE(image.ok()) << kept << " of " << whole.size() << " bytes";
    EXPECT_EQ(image.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(image.error().text(), HasSubstr("cut.jpg: an incomplete JPEG image: at byte"));
  }
  EXPECT_FALSE(decodeJpeg(folder.write("text.jpg", "this is a text"), 8).ok());
  EXPECT_EQ(decodeJpeg(folder.path() / "none.jpg", 8).error().code, ErrorCode::kNotFound);
}

TEST(Jpeg, TakesNoMemoryForASizeThatTheFileCannotHold) {
  const testing::TempDir folder;
  std::string file = red(200, 200);
  const size_t frame = file.find("\xff\xc0");  // its marker, length and precision; then height and width
  ASSERT_NE(frame, std::string::npos);
  file.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  const auto image = decodeJpeg(folder.write("huge.jpg", file), 1);
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(image.error().text(), HasSubstr("65500 x 65500 pixels is larger than"));
}

TEST(Jpeg, DecodesAnImageThatIsAllOneColour) {
  const testing::TempDir folder;
  const auto image = decodeJpeg(folder.write("plain.jpg", red(4000, 4000)), 4000);
  ASSERT_TRUE(image.ok()) << image.error().text();
  EXPECT_EQ(image->height, 4000);
}

class Folder : public ::testing::Test {
 protected:
  Folder() {
    for (const char* split : {"train", "val"})
      for (const char* name : {"n01", "n02", "n03"})
        for (int i = 0; i < 3; ++i)
          folder_.write(std::string(split) + "/" + name + "/" + std::to_string(i) + ".JPEG",
                        red(64 + 8 * i, 48));
    spec_.mode = "imagenet";
    spec_.folder = folder_.path().string();
    spec_.imageSize = 32;
  }
  testing::TempDir folder_;
  DatasetSpec spec_;
};

TEST_F(Folder, NumbersClassesByNameAndCrops) {
  for (Split split : {Split::kTrain, Split::kTest}) {
    spec_.split = split;
    auto data = openDataset(spec_);
    ASSERT_TRUE(data.ok()) << data.error().text();
    EXPECT_EQ((*data)->size(), 9u);
    EXPECT_EQ((*data)->classes(), 3);
    std::vector<float> pixels((*data)->shape().pixels());
    int32_t label = -1;
    for (uint64_t key : {0, 5, 6, 7}) {
      ASSERT_TRUE((*data)->read(7, key, {pixels.data(), nullptr, &label}).ok());
      EXPECT_EQ(label, 2);
      EXPECT_NEAR(pixels[0], (254.0F / 255 - 0.485F) / 0.229F, 0.1);
      EXPECT_NEAR(pixels.back(), -0.406F / 0.225F, 0.1);
    }
  }
}

TEST_F(Folder, TellsADamagedImageWhenItIsRead) {
  const std::string whole = red(64, 64);
  folder_.write("train/n02/1.JPEG", whole.substr(0, whole.size() / 2));
  auto data = openDataset(spec_);
  ASSERT_TRUE(data.ok());
  std::vector<float> pixels((*data)->shape().pixels());
  int32_t label = 0;
  EXPECT_TRUE((*data)->read(3, 0, {pixels.data(), nullptr, &label}).ok());
  EXPECT_THAT((*data)->read(4, 0, {pixels.data(), nullptr, &label}).error().text(),
              HasSubstr("train/n02/1.JPEG"));
}

TEST_F(Folder, WantsTheSameClassesInBothSplitsAndNoneEmpty) {
  std::filesystem::remove_all(folder_.path() / "val" / "n03");
  spec_.split = Split::kTest;
  EXPECT_THAT(openDataset(spec_).error().text(), HasSubstr("its 2 classes are not the 3 of"));
  std::filesystem::create_directory(folder_.path() / "train" / "n04");
  spec_.split = Split::kTrain;
  EXPECT_THAT(openDataset(spec_).error().text(), HasSubstr("n04: no JPEG file of this class"));
}

}  // namespace
}  // namespace muster::train
