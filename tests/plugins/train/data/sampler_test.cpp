// SPDX-License-Identifier: Apache-2.0
// Which samples each rank reads: all ranks together each sample at most once an epoch, in an order of its
// own.
#include "plugins/train/data/sampler.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::train {
namespace {

std::unique_ptr<Sampler> made(const SamplerSpec& spec) {
  auto sampler = Sampler::make(spec);
  EXPECT_TRUE(sampler.ok()) << sampler.error().text();
  return std::move(*sampler);
}

TEST(Sampler, SharesAnEpochAmongRanksWithoutOverlap) {
  for (int ranks : {1, 2, 3, 7}) {
    std::set<uint64_t> seen;
    uint64_t read = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      auto sampler = made({1000, rank, ranks, 8, true, false, 5});
      EXPECT_EQ(sampler->batchesPerEpoch(), 1000U / (8U * static_cast<unsigned>(ranks)));
      for (uint64_t b = 0; b < sampler->batchesPerEpoch(); ++b) {
        const auto batch = sampler->batch(b);
        EXPECT_EQ(batch.size(), 8u);
        read += batch.size();
        seen.insert(batch.begin(), batch.end());
      }
    }
    EXPECT_EQ(seen.size(), read) << ranks << " ranks read a sample twice";
    EXPECT_GT(read, 1000U - 8U * static_cast<unsigned>(ranks));
  }
}

TEST(Sampler, ReadsAllOfATestSetOnce) {
  std::multiset<uint64_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    auto sampler = made({101, rank, 3, 8, false, true, 0});
    for (uint64_t b = 0; b < sampler->batchesPerEpoch(); ++b)
      for (uint64_t sample : sampler->batch(b)) seen.insert(sample);
  }
  ASSERT_EQ(seen.size(), 101u);
  EXPECT_EQ(std::set<uint64_t>(seen.begin(), seen.end()).size(), 101u);
}

TEST(Sampler, ShufflesAnewInEachEpochAndAlikeForEqualSeeds) {
  const SamplerSpec spec = {64, 0, 1, 64, true, false, 9};
  auto a = made(spec);
  auto b = made(spec);
  EXPECT_EQ(a->batch(0), b->batch(0));
  EXPECT_EQ(a->batch(3), b->batch(3));
  EXPECT_NE(a->batch(0), a->batch(1));
  EXPECT_EQ(a->batch(0), b->batch(0)) << "an epoch that was left is the same again";
  auto other = made({64, 0, 1, 64, true, false, 10});
  EXPECT_NE(a->batch(0), other->batch(0));
}

TEST(Sampler, SaysWhenThereIsNotOneBatch) {
  const auto sampler = Sampler::make({63, 0, 2, 32, true, false, 0});
  ASSERT_FALSE(sampler.ok());
  EXPECT_EQ(sampler.error().message,
            "63 samples are not enough for one batch of 32 on each of 2 ranks; lower batch_size");
}

}  // namespace
}  // namespace muster::train
