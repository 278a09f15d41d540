// SPDX-License-Identifier: Apache-2.0
// What node 0 decides reaches all nodes.
#include "runner/cluster/cluster_agreement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runner/cluster/cluster_nodes.h"

namespace muster::testing {
namespace {

TEST(ClusterAgreement, GivesAllNodesNodeZerosDecision) {
  Nodes nodes(5);
  nodes.startAll();
  const auto sum = [](const ClusterAgreement::Answers& answers) {
    int total = 0;
    for (const auto& answer : answers) total += answer ? answer->get<int>() : -1000;
    return Json(total);
  };
  for (int question = 0; question < 20; ++question) {
    const auto all = nodes.onEach<Result<Json>>([&](ClusterLink& link) {
      return link.agreement().ask(fmt::format("q{}", question), link.options().nodeRank + question, 10, sum);
    });
    for (const auto& decision : all) {
      ASSERT_TRUE(decision.ok()) << decision.error().text();
      EXPECT_EQ(*decision, 10 + 5 * question);
    }
  }
}

TEST(ClusterAgreement, WaitsForANameThatCannotBeLookedUpOnlyOnce) {
  Nodes nodes(2);
  ClusterOptions options = nodes.options(1);
  options.store = {"node-0.invalid", 1};
  ClusterLink& link = nodes.start(options);
  const auto ask = [&](const char* question, double patience) {
    const auto decision = link.agreement().ask(question, 1, patience, nullptr);
    return decision.ok() ? std::string("a decision") : decision.error().text();
  };
  EXPECT_THAT(ask("first", 2.5), ::testing::HasSubstr("cannot look up node-0.invalid"));
  // By any clock: none of these may wait for its hour.
  EXPECT_THAT(ask("second", 3600), ::testing::HasSubstr("did not answer at node-0.invalid"));
  EXPECT_THAT(ask("third", 3600), ::testing::HasSubstr("did not answer at node-0.invalid"));
}

TEST(ClusterAgreement, GivesEachNodeItsOwnPartOfADecision) {
  Nodes nodes(4);
  nodes.startAll();
  const auto decide = [](const ClusterAgreement::Answers& answers) {
    Json parts = Json::array();
    for (const auto& answer : answers) parts.push_back(*answer);
    return Json{{"all", 7}, {"parts", std::move(parts)}};
  };
  for (int question = 0; question < 3; ++question) {
    const auto all = nodes.onEach<Result<Json>>([&](ClusterLink& link) {
      return link.agreement().ask(fmt::format("q{}", question), fmt::format("of {}", link.options().nodeRank),
                                  10, decide);
    });
    for (int rank = 0; rank < 4; ++rank) {
      const auto& decision = all[static_cast<size_t>(rank)];
      ASSERT_TRUE(decision.ok()) << decision.error().text();
      EXPECT_EQ((*decision)["part"], fmt::format("of {}", rank));
      EXPECT_EQ((*decision)["all"], 7);
      EXPECT_FALSE(decision->contains("parts"));
    }
  }
}

}  // namespace
}  // namespace muster::testing
