// SPDX-License-Identifier: Apache-2.0
// Block sums: whatever one byte of a block becomes, it is found.
#include "runner/attest/byte_locator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace muster::attest {
namespace {

std::string randomBytes(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

BlockSums sumsOf(const std::string& bytes, uint64_t block) {
  BlockSummer summer(block);
  for (size_t at = 0; at < bytes.size(); at += 100) summer.add(std::string_view(bytes).substr(at, 100));
  return summer.sums();
}

TEST(ByteLocator, FindsEachChangedByteOfABlock) {
  std::mt19937 random(1);
  for (const size_t size : {1, 2, 255, 1000}) {
    const std::string original = randomBytes(size, static_cast<unsigned>(size));
    const uint32_t expected = sumsOf(original, 4096).sums.front();
    EXPECT_TRUE(singleChanges(original, expected).empty());
    for (size_t at = 0; at < size; ++at) {
      std::string changed = original;
      changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1 + random() % 255));
      const auto found = singleChanges(changed, expected);
      EXPECT_TRUE(std::any_of(found.begin(), found.end(), [&](const ChangedByte& change) {
        return change.at == at && change.from == static_cast<unsigned char>(original[at]);
      })) << at;
    }
  }
}

TEST(ByteLocator, NamesTheBlocksThatDiffer) {
  const std::string original = randomBytes(10'000, 7);
  std::string changed = original;
  changed[3'000] ^= 1;
  changed[5'100] ^= 1;
  const auto range = differingRange(sumsOf(original, 1024), sumsOf(changed, 1024));
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 2048U);
  EXPECT_EQ(range->end, 5120U);
  EXPECT_FALSE(differingRange(sumsOf(original, 1024), sumsOf(original, 1024)));
}

TEST(ByteLocator, TakesAMissingEndForADifference) {
  const std::string original = randomBytes(10'000, 7);
  for (const size_t size : {0, 1, 1023, 1024, 9'999}) {
    const auto range = differingRange(sumsOf(original, 1024), sumsOf(original.substr(0, size), 1024));
    ASSERT_TRUE(range) << size;
    EXPECT_LE(range->begin, size);
    EXPECT_EQ(range->end, original.size());
  }
}

TEST(ByteLocator, HasAtMost64Blocks) {
  for (uint64_t bytes = 0; bytes < (1ull << 40); bytes = bytes * 3 + 1) {
    const uint64_t block = blockSizeFor(bytes);
    EXPECT_LE((bytes + block - 1) / block, 64U) << bytes;
  }
}

}  // namespace
}  // namespace muster::attest
