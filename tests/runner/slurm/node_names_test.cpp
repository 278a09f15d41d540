// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/node_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NodeNames, KeepsTheOrderAndEachNameOnce) {
  const auto names = nodeNames("node[3,1-2],login,node2");
  ASSERT_TRUE(names.ok()) << names.error().text();
  EXPECT_THAT(*names, ElementsAre("node3", "node1", "node2", "login"));
}

TEST(NodeNames, RefusesNamesThatAreNotFileNames) {
  for (const char* list : {"../../etc", "a/b", "$(reboot)", "a b", "-x", ".hidden"}) {
    const auto names = nodeNames(list);
    ASSERT_FALSE(names.ok()) << list;
    EXPECT_EQ(names.error().code, ErrorCode::kUsage);
  }
}

TEST(NodeNames, ShortensNumbersOfEqualWidth) {
  EXPECT_EQ(shortList({"gpu003", "gpu001", "login", "gpu002", "gpu007", "gpu001"}), "gpu[001-003,007],login");
  EXPECT_EQ(shortList({"n9", "n10", "n11"}), "n9,n[10-11]");
  EXPECT_EQ(shortList({"a"}), "a");
  EXPECT_EQ(shortList({}), "");
}

TEST(NodeNames, ShortFormExpandsToTheSameNames) {
  std::vector<std::string> names;
  for (int i = 0; i < 1200; i += 7)
    names.push_back("rack-" + std::to_string(i % 13) + "-n" + std::to_string(i));
  const auto again = nodeNames(shortList(names));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_THAT(*again, ::testing::UnorderedElementsAreArray(names));
}

}  // namespace
}  // namespace muster::slurm
