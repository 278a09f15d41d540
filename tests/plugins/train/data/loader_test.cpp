// SPDX-License-Identifier: Apache-2.0
// The loader: order, content and errors do not depend on its threads. Also built with ThreadSanitizer.
#include "plugins/train/data/loader.h"

#include <gtest/gtest.h>

#include <atomic>

namespace muster::train {
namespace {

/// Samples that say which they are; one of them may be damaged, and reading may take differently long.
class NumberedSamples : public Dataset {
 public:
  explicit NumberedSamples(uint64_t size, uint64_t damaged = ~0ULL) : size_(size), damaged_(damaged) {}
  [[nodiscard]] std::string name() const override { return "numbers"; }
  [[nodiscard]] SampleShape shape() const override { return {1, 2, 2, 0}; }
  [[nodiscard]] int classes() const override { return 10; }
  [[nodiscard]] uint64_t size() const override { return size_; }
  Status read(uint64_t index, uint64_t key, const SampleSink& sink) const override {
    ++reads;
    if (index % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (index == damaged_) return Error{ErrorCode::kCorrupt, "sample is damaged", "numbers"};
    if (index == thrown) throw std::runtime_error("out of paper");
    for (int i = 0; i < 4; ++i) sink.image[i] = static_cast<float>(index);
    *sink.labels = static_cast<int32_t>(index % 10);
    if (key != 0) sink.image[3] = static_cast<float>(key % 1000);
    return {};
  }
  mutable std::atomic<uint64_t> reads = 0;
  uint64_t thrown = ~0ULL;

 private:
  uint64_t size_;
  uint64_t damaged_;
};

LoaderSpec spec(int workers, uint64_t batches) {
  LoaderSpec spec;
  spec.sampler.batch = 4;
  spec.sampler.seed = 3;
  spec.workers = workers;
  spec.prefetch = 3;
  spec.batches = batches;
  return spec;
}

/// Everything that a loader hands out.
std::vector<float> drained(const Dataset& data, const LoaderSpec& spec) {
  auto loader = Loader::start(data, spec);
  EXPECT_TRUE(loader.ok());
  std::vector<float> all;
  for (uint64_t i = 0; i < spec.batches; ++i) {
    auto batch = (*loader)->next();
    if (!batch.ok()) {
      ADD_FAILURE() << batch.error().text();
      return all;
    }
    EXPECT_EQ((*batch)->number, i);
    all.insert(all.end(), (*batch)->images.begin(), (*batch)->images.end());
    for (int32_t label : (*batch)->labels) all.push_back(static_cast<float>(label));
  }
  return all;
}

TEST(Loader, HandsOutTheSameWhateverItsThreads) {
  const NumberedSamples data(50);
  for (bool augment : {false, true}) {
    LoaderSpec one = spec(1, 40);
    one.augment = augment;
    const auto expected = drained(data, one);
    EXPECT_EQ(expected.size(), 40u * 4 * 5);
    for (int workers : {2, 3, 8}) {
      LoaderSpec many = one;
      many.workers = workers;
      EXPECT_EQ(drained(data, many), expected) << workers << " workers";
    }
  }
}

TEST(Loader, KeepsImagesOnPagesOfTheirOwn) {
  const NumberedSamples data(50);
  const auto loader = Loader::start(data, spec(1, 1));
  ASSERT_TRUE(loader.ok());
  std::set<uintptr_t> pages;
  for (const std::span<float> images : (*loader)->imageMemory()) {
    const auto begin = reinterpret_cast<uintptr_t>(images.data());
    EXPECT_EQ(begin % PageAllocator<float>::kPage, 0u);
    EXPECT_TRUE(pages.insert(begin / PageAllocator<float>::kPage).second);
  }
  EXPECT_EQ(pages.size(), 4u) << "those that are read ahead, and the one that is in use";
}

TEST(Loader, ReadsNoFurtherAheadThanItMay) {
  const NumberedSamples data(1000);
  auto loader = Loader::start(data, spec(2, 200));
  ASSERT_TRUE(loader.ok());
  ASSERT_TRUE((*loader)->next().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(data.reads, 4u * 4u) << "three batches ahead, and the one in hand";
}

TEST(Loader, GivesADamagedSamplesErrorInItsTurn) {
  const NumberedSamples data(12, 7);
  auto loader = Loader::start(data, spec(3, 30));
  ASSERT_TRUE(loader.ok());
  int good = 0;
  for (; good < 3; ++good) {
    auto batch = (*loader)->next();
    if (batch.ok()) continue;
    EXPECT_EQ(batch.error().text(), "numbers: sample is damaged");
    EXPECT_EQ((*loader)->next().error().message, "sample is damaged") << "it is not skipped";
    return;
  }
  FAIL() << "an epoch of three batches has every sample, the damaged one too";
}

TEST(Loader, TurnsAnExceptionOfAReaderIntoAnError) {
  NumberedSamples data(4);
  data.thrown = 2;
  auto loader = Loader::start(data, spec(2, 1));
  ASSERT_TRUE(loader.ok());
  EXPECT_NE((*loader)->next().error().message.find("out of paper"), std::string::npos);
}

TEST(Loader, EndsWithItsBatchesAndWhenNobodyReadsOn) {
  const NumberedSamples data(100);
  auto loader = Loader::start(data, spec(4, 2));
  ASSERT_TRUE(loader.ok());
  EXPECT_TRUE((*loader)->next().ok());
  EXPECT_TRUE((*loader)->next().ok());
  EXPECT_FALSE((*loader)->next().ok());
  auto abandoned = Loader::start(data, spec(4, 1000));
  ASSERT_TRUE(abandoned.ok());
}

TEST(Loader, PadsTheEndOfATestSet) {
  const NumberedSamples data(6);
  LoaderSpec whole = spec(2, 2);
  whole.sampler.shuffle = false;
  whole.sampler.wholeSet = true;
  auto loader = Loader::start(data, whole);
  ASSERT_TRUE(loader.ok());
  EXPECT_EQ((*(*loader)->next())->valid, 4);
  const Batch& last = **(*loader)->next();
  EXPECT_EQ(last.valid, 2);
  EXPECT_EQ(last.labels, (std::vector<int32_t>{4, 5, 0, 0}));
}

}  // namespace
}  // namespace muster::train
