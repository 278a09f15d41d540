// SPDX-License-Identifier: Apache-2.0
// FashionMNIST and CIFAR files made by hand: what is read, and how damage is told.
#include <gmock/gmock.h>
#include <zlib.h>

#include "plugins/train/data/dataset.h"
#include "tests/support/process.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

std::string bigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

std::string idxImages(uint32_t count) {
  std::string file = bigEndian(0x0803) + bigEndian(count) + bigEndian(28) + bigEndian(28);
  for (uint32_t i = 0; i < count * 784; ++i) file.push_back(static_cast<char>(i % 251));
  return file;
}

std::string idxLabels(uint32_t count) {
  std::string file = bigEndian(0x0801) + bigEndian(count);
  for (uint32_t i = 0; i < count; ++i) file.push_back(static_cast<char>(i % 10));
  return file;
}

std::string gzipped(const std::string& content, const testing::TempDir& folder) {
  const auto path = folder.path() / "some.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return testing::readWhole(path);
}

std::string cifarRecords(int count, const std::string& labels) {
  std::string file;
  for (int i = 0; i < count; ++i) {
    file += labels;
    for (int p = 0; p < 3072; ++p) file.push_back(static_cast<char>(p / 1024 == 1 ? 255 : 0));
  }
  return file;
}

class ImageData : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> open(const std::string& mode, Split split = Split::kTrain) {
    DatasetSpec spec;
    spec.mode = mode;
    spec.folder = folder_.path().string();
    spec.split = split;
    return openDataset(spec);
  }
  std::string errorOf(const std::string& mode) {
    auto data = open(mode);
    return data.ok() ? "it was opened" : data.error().text();
  }
  std::vector<float> image(const Dataset& data, uint64_t index, int32_t* label, uint64_t key = 0) {
    std::vector<float> pixels(data.shape().pixels());
    const Status status = data.read(index, key, {pixels.data(), nullptr, label});
    EXPECT_TRUE(status.ok());
    return pixels;
  }
  void writeFashion(const std::string& images, const std::string& labels) {
    folder_.write("train-images-idx3-ubyte", images);
    folder_.write("train-labels-idx1-ubyte", labels);
  }
  testing::TempDir folder_;
};

TEST_F(ImageData, ReadsFashionMnistPlainAndCompressed) {
  folder_.write("train-images-idx3-ubyte.gz", gzipped(idxImages(12), folder_));
  folder_.write("train-labels-idx1-ubyte", idxLabels(12));
  auto data = open("fashion-mnist");
  ASSERT_TRUE(data.ok()) << data.error().text();
  EXPECT_EQ((*data)->size(), 12u);
  EXPECT_EQ((*data)->classes(), 10);
  EXPECT_EQ((*data)->shape().pixels(), 3u * 32 * 32);
  int32_t label = 0;
  const auto pixels = image(**data, 3, &label);
  EXPECT_EQ(label, 3);
  const auto at = [&](int c, int y, int x) { return pixels[static_cast<size_t>((c * 32 + y) * 32 + x)]; };
  const auto stored = [](int y, int x) { return static_cast<float>((3 * 784 + y * 28 + x) % 251) / 255; };
  EXPECT_NEAR(at(0, 2, 2), (stored(0, 0) - 0.2860F) / 0.3530F, 1e-5);
  EXPECT_NEAR(at(2, 20, 9), (stored(18, 7) - 0.2860F) / 0.3530F, 1e-5);
  EXPECT_NEAR(at(1, 0, 0), -0.2860F / 0.3530F, 1e-5) << "the rim is black";
}

TEST_F(ImageData, AugmentsByKeyAlone) {
  writeFashion(idxImages(2), idxLabels(2));
  auto data = open("fashion-mnist");
  ASSERT_TRUE(data.ok());
  int32_t label = 0;
  const auto plain = image(**data, 1, &label);
  EXPECT_EQ(image(**data, 1, &label, 77), image(**data, 1, &label, 77));
  int changed = 0;
  for (uint64_t key = 1; key < 20; ++key) changed += image(**data, 1, &label, key) != plain ? 1 : 0;
  EXPECT_GT(changed, 15);
}

TEST_F(ImageData, NamesFileAndOffsetOfDamage) {
  EXPECT_THAT(errorOf("fashion-mnist"),
              HasSubstr("no train-images-idx3-ubyte and no train-images-idx3-ubyte.gz there"));
  writeFashion(idxImages(3).substr(0, 2000), idxLabels(3));
  EXPECT_THAT(errorOf("fashion-mnist"),
              HasSubstr("train-images-idx3-ubyte: at byte 2000: it has 2000 bytes, and 3 "
                        "items need 2368"));
  writeFashion(bigEndian(0x0803).substr(0, 3), idxLabels(3));
  EXPECT_THAT(errorOf("fashion-mnist"), HasSubstr("at byte 3: it ends inside its header of 16 bytes"));
  writeFashion("garbage" + idxImages(3), idxLabels(3));
  EXPECT_THAT(errorOf("fashion-mnist"), HasSubstr("at byte 0: the magic number is not 0x00000803"));
  writeFashion(idxImages(3), idxLabels(4));
  EXPECT_THAT(errorOf("fashion-mnist"), HasSubstr("at byte 4: 4 labels for the 3 images"));
  std::string labels = idxLabels(3);
  labels[9] = 10;
  writeFashion(idxImages(3), labels);
  EXPECT_THAT(errorOf("fashion-mnist"), HasSubstr("at byte 9: no label from 0 to 9"));
}

TEST_F(ImageData, FindsACompressedFileThatIsCutShortOrBent) {
  folder_.write("train-labels-idx1-ubyte", idxLabels(40));
  std::string whole = gzipped(idxImages(40), folder_);
  folder_.write("train-images-idx3-ubyte.gz", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(errorOf("fashion-mnist"),
              HasSubstr("train-images-idx3-ubyte.gz: damaged or truncated at byte"));
  whole[whole.size() - 5] = static_cast<char>(whole[whole.size() - 5] ^ 1);
  folder_.write("train-images-idx3-ubyte.gz", whole);
  EXPECT_THAT(errorOf("fashion-mnist"), HasSubstr("damaged or truncated")) << "its checksum no longer fits";
}

TEST_F(ImageData, ReadsBothKindsOfCifar) {
  for (int i = 1; i <= 5; ++i)
    folder_.write("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin", cifarRecords(4, "\x07"));
  auto ten = open("cifar10");
  ASSERT_TRUE(ten.ok()) << ten.error().text();
  EXPECT_EQ((*ten)->size(), 20u);
  int32_t label = 0;
  const auto pixels = image(**ten, 19, &label);
  EXPECT_EQ(label, 7);
  EXPECT_NEAR(pixels[0], -0.4914F / 0.2470F, 1e-5);
  EXPECT_NEAR(pixels[1024], (1 - 0.4822F) / 0.2435F, 1e-5) << "the green plane is full";
  folder_.write("train.bin", cifarRecords(3, std::string("\x05\x63", 2)));
  auto hundred = open("cifar100");
  ASSERT_TRUE(hundred.ok()) << hundred.error().text();
  EXPECT_EQ((*hundred)->size(), 3u);
  image(**hundred, 2, &label);
  EXPECT_EQ(label, 99) << "the fine label, not the coarse one";
}

TEST_F(ImageData, NamesWhatIsWrongWithCifar) {
  EXPECT_THAT(errorOf("cifar10"), HasSubstr("data_batch_1.bin: no such file"));
  folder_.write("train.bin", cifarRecords(3, std::string("\x05\x63", 2)).substr(0, 5000));
  EXPECT_THAT(errorOf("cifar100"),
              HasSubstr("train.bin: at byte 3074: it has 5000 bytes, not a multiple of a record's "
                        "3074"));
  folder_.write("train.bin", cifarRecords(1, std::string("\x05\x64", 2)));
  EXPECT_THAT(errorOf("cifar100"), HasSubstr("train.bin: at byte 1: no label from 0 to 99"));
}

TEST_F(ImageData, NeverPutsAnythingInPlaceOfWhatIsMissing) {
  DatasetSpec spec;
  spec.mode = "cifar10";
  EXPECT_THAT(openDataset(spec).error().text(), HasSubstr("needs data_dir"));
  spec.mode = "mnist";
  spec.folder = "/nowhere";
  EXPECT_EQ(openDataset(spec).error().code, ErrorCode::kUsage);
  spec.mode = "imagenet";
  EXPECT_EQ(openDataset(spec).error().code, ErrorCode::kNotFound);
}

TEST_F(ImageData, TakesAPartThatIsSpreadOverAll) {
  writeFashion(idxImages(10), idxLabels(10));
  DatasetSpec spec;
  spec.mode = "fashion-mnist";
  spec.folder = folder_.path().string();
  spec.limit = 5;
  auto data = openDataset(spec);
  ASSERT_TRUE(data.ok()) << data.error().text();
  ASSERT_EQ((*data)->size(), 5u);
  int32_t label = 0;
  image(**data, 4, &label);
  EXPECT_EQ(label, 8);
  spec.limit = 11;
  EXPECT_THAT(openDataset(spec).error().text(), HasSubstr("11 samples are asked for"));
  spec.limit = 0;
  spec.classes = 9;
  EXPECT_THAT(openDataset(spec).error().text(), HasSubstr("has 10 classes and num_classes is 9"));
}

TEST(Synthetic, IsTheSameForASeedAndHasSomethingToLearn) {
  DatasetSpec spec;
  spec.classes = 10;
  spec.imageSize = 16;
  spec.seed = 5;
  auto a = openDataset(spec);
  auto b = openDataset(spec);
  ASSERT_TRUE(a.ok() && b.ok());
  std::vector<float> x(768);
  std::vector<float> y(768);
  int32_t label = 0;
  int32_t other = 0;
  ASSERT_TRUE((*a)->read(9, 0, {x.data(), nullptr, &label}).ok());
  ASSERT_TRUE((*b)->read(9, 0, {y.data(), nullptr, &other}).ok());
  EXPECT_EQ(x, y);
  EXPECT_EQ(label, other);
  // Samples of one class agree more than those of two.
  double same = 0;
  double different = 0;
  int counts[2] = {0, 0};
  for (uint64_t i = 10; i < 300; ++i) {
    ASSERT_TRUE((*a)->read(i, 0, {y.data(), nullptr, &other}).ok());
    double product = 0;
    for (size_t p = 0; p < x.size(); ++p) product += static_cast<double>(x[p]) * y[p];
    (other == label ? same : different) += product;
    ++counts[other == label ? 0 : 1];
  }
  EXPECT_GT(same / counts[0], different / counts[1] + 50);
}

TEST(Synthetic, MakesTokensBelowTheVocabulary) {
  DatasetSpec spec;
  spec.tokens = 32;
  spec.classes = 40;
  auto data = openDataset(spec);
  ASSERT_TRUE(data.ok());
  std::vector<int32_t> tokens(32);
  std::vector<int32_t> labels(32);
  for (uint64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE((*data)->read(i, 0, {nullptr, tokens.data(), labels.data()}).ok());
    for (size_t t = 0; t < 32; ++t) {
      ASSERT_GE(tokens[t], 0);
      ASSERT_LT(tokens[t], 40);
      if (t > 0) {
        EXPECT_EQ(labels[t - 1], tokens[t]) << "a label is the next token";
      }
    }
  }
  spec.mode = "fashion-mnist";
  EXPECT_THAT(openDataset(spec).error().text(), HasSubstr("this model reads tokens"));
}

}  // namespace
}  // namespace muster::train
