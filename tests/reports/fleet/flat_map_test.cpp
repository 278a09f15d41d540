// SPDX-License-Identifier: Apache-2.0
// The map that readers of records fill and empty: it holds what a std::map would.
#include "reports/fleet/read/flat_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace muster::fleet {
namespace {

TEST(FlatMap, HoldsWhatWasPutIn) {
  std::mt19937_64 random(3);
  FlatMap<int> flat;
  for (int round = 0; round < 20; ++round) {
    std::map<uint64_t, int> known;
    for (int i = 0; i < 2000; ++i) {
      const uint64_t key = random() % (round % 2 == 0 ? 500 : ~uint64_t{0});
      const auto [at, isNew] = known.try_emplace(key, i);
      const auto [value, fresh] = flat.tryEmplace(key, i);
      EXPECT_EQ(fresh, isNew);
      EXPECT_EQ(*value, at->second);
    }
    EXPECT_EQ(flat.size(), known.size());
    for (const auto& [key, value] : known) {
      ASSERT_NE(flat.find(key), nullptr);
      EXPECT_EQ(*flat.find(key), value);
    }
    flat.clear();
    for (const auto& [key, value] : known) EXPECT_EQ(flat.find(key), nullptr);
  }
}

TEST(FlatMap, IsEmptyAtFirst) {
  FlatMap<int> flat;
  EXPECT_EQ(flat.find(0), nullptr);
  EXPECT_EQ(flat.size(), 0u);
  EXPECT_TRUE(flat.tryEmplace(0, 1).second);
  EXPECT_FALSE(flat.tryEmplace(0, 2).second);
  EXPECT_EQ(*flat.find(0), 1);
}

}  // namespace
}  // namespace muster::fleet
