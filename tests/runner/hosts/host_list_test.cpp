// SPDX-License-Identifier: Apache-2.0
// Slurm's host lists: what real ones expand to, and that hostile ones end quickly with a column.
#include "runner/hosts/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostList, ExpandsRangesInOrder) {
  EXPECT_THAT(*expandHostList("login"), ElementsAre("login"));
  EXPECT_THAT(*expandHostList("gpu[001-003,007],cpu5"),
              ElementsAre("gpu001", "gpu002", "gpu003", "gpu007", "cpu5"));
  EXPECT_THAT(*expandHostList("n[9-11]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(*expandHostList("n[099-101]"), ElementsAre("n099", "n100", "n101"));
  EXPECT_THAT(*expandHostList("r[1-2]-n[3-4].example"),
              ElementsAre("r1-n3.example", "r1-n4.example", "r2-n3.example", "r2-n4.example"));
  EXPECT_THAT(*expandHostList("b,a"), ElementsAre("b", "a"));
}

TEST(HostList, NamesTheColumnOfAMistake) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"", "column 1: it is empty"},
      {"a,,b", "column 3: a host name is missing"},
      {"a,", "column 3: a host name is"},
      {"a[1-3", "column 6: expected \",\" or \"]\""},
      {"a1]", "column 3: \"]\" without"},
      {"a[]", "column 3: expected a number"},
      {"a[3-1]", "the range 3-1 runs back"},
      {"a[1-]", "column 5: expected a number"},
      {"a[x]", "column 3: expected a number"},
      {"a b", "column 2: a character that is not valid in host names"},
      {"a[1[2]]", "column 4: expected"},
      {"a[1-2-3]", "column 6: expected"}};
  for (const auto& [list, message] : mistakes) {
    const auto hosts = expandHostList(list);
    ASSERT_FALSE(hosts.ok()) << list;
    EXPECT_THAT(hosts.error().text(), HasSubstr(message)) << list;
  }
}

TEST(HostList, BoundsWhatAHostileListCanCost) {
  EXPECT_EQ(expandHostList("n[1-65536]")->size(), 65536u);
  for (const std::string& list :
       {std::string("n[1-65537]"), std::string("n[0-999999999]"), std::string("n[1-300]x[1-300]"),
        std::string("n[1-99999999999999999999]"), std::string("n[1-65536],n[1-65536]"),
        "n[1-65536]" + std::string(100'000, 'x'), std::string(300, 'x'), std::string(2 << 20, 'a')})
    EXPECT_FALSE(expandHostList(list).ok()) << list.substr(0, 40);
  std::string brackets = "n";
  for (int i = 0; i < 40; ++i) brackets += "[1-2]";
  EXPECT_THAT(expandHostList(brackets).error().text(), HasSubstr("more than 65536 hosts"));
}

}  // namespace
}  // namespace muster
