// SPDX-License-Identifier: Apache-2.0
// What node 0's news may be, and what is ignored.
#include "runner/cluster/cluster_news.h"

#include <gtest/gtest.h>

#include "tests/runner/cluster/cluster_nodes.h"

namespace muster::testing {
namespace {

TEST(ClusterNews, TakesWhatNodeZeroTellsAndIgnoresWhatIsNoNews) {
  ClusterNode node(Nodes(2).options(1), "a start");
  ClusterNews news(node);
  news.take(
      R"({"status": "s", "round": "r", "culprit": "c", "ranks": [3], "open": "o", "decided": "d", "decision": "7"})");
  for (
      const char* text :
      {"", "{", "[]", "7", "null", "{}", R"({"status": "other"})",
       R"({"status": 1, "round": "", "culprit": "", "ranks": [], "open": "", "decided": "", "decision": ""})",
       R"({"status": "x", "round": "", "culprit": "", "ranks": [[]], "open": "", "decided": "", "decision": ""})"})
    news.take(text);
  const ClusterNews::News& last = news.last();
  EXPECT_EQ(last.status + last.round + last.culprit.text + last.open + last.decided + last.decision,
            "srcod7");
  EXPECT_EQ(last.culprit.ranks, std::set<int>{3});
}

}  // namespace
}  // namespace muster::testing
