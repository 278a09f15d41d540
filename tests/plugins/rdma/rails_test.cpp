// SPDX-License-Identifier: Apache-2.0
// Which node meets which, and where.
#include "plugins/rdma/rails.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::rdma {
namespace {

class RingRounds : public ::testing::TestWithParam<int> {};

TEST_P(RingRounds, LetEveryNodeServeOnceAndBeClientOnceAndNeverBothAtOnce) {
  const int nodes = GetParam();
  const auto rounds = ringRounds(nodes);
  EXPECT_EQ(rounds.size(), nodes % 2 == 0 ? 2u : 3u);
  std::vector<int> served(static_cast<size_t>(nodes), 0);
  std::vector<int> called(static_cast<size_t>(nodes), 0);
  for (const auto& round : rounds) {
    std::set<int> busy;
    for (const NodePair& pair : round) {
      EXPECT_NE(pair.server, pair.client);
      ++served[static_cast<size_t>(pair.server)];
      ++called[static_cast<size_t>(pair.client)];
      for (const int node : {pair.server, pair.client}) EXPECT_TRUE(busy.insert(node).second) << node;
    }
  }
  EXPECT_EQ(served, std::vector<int>(static_cast<size_t>(nodes), 1));
  EXPECT_EQ(called, served);
}

INSTANTIATE_TEST_SUITE_P(Rails, RingRounds, ::testing::Values(2, 3, 4, 5, 8, 33, 1024));

TEST(Rails, ANodeAloneHasNoPairs) {
  EXPECT_TRUE(ringRounds(1).empty());
}

TEST(Rails, OwnAddressIsThatOfTheInterface) {
  const auto address = ownAddress("lo");
  ASSERT_TRUE(address.ok()) << address.error().text();
  EXPECT_EQ(*address, "127.0.0.1");
  EXPECT_FALSE(ownAddress("").value().empty());
  const auto missing = ownAddress("ib7");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("\"ib7\""), std::string::npos);
}

}  // namespace
}  // namespace muster::rdma
