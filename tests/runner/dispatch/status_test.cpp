// SPDX-License-Identifier: Apache-2.0
// What the supervisor tells of running ranks, and how it ends them when a peer elsewhere is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {

using State = RankEnd::State;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RankStatus, SaysThatARankIsStoppedWhenTheDeadlineComes) {
  FakeGroup group;
  group.add("hang");
  group.options.timeout = 2;
  std::vector<RankStatus> last;
  group.options.onStatus = [&](const std::vector<RankStatus>& all) {
    last = all;
    if (all[0].pid > 0 && all[0].state != 'T') kill(all[0].pid, SIGSTOP);
  };
  EXPECT_EQ(group.run().ends.at(0).state, State::kTimeout);
  ASSERT_EQ(last.size(), 1U);
  // The deadline's own TERM and KILL come after the last look.
  EXPECT_EQ(last[0].state, 'T');
  EXPECT_EQ(last[0].failure, "");
  EXPECT_FALSE(last[0].ended);
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(RankStatus, TellsAFailureOfTheRankButNotOfThoseStoppedForIt) {
  FakeGroup group;
  group.add("hang");
  group.add("crash");
  group.options.failTogether = true;
  std::vector<std::string> failures(2);
  group.options.onStatus = [&](const std::vector<RankStatus>& all) {
    for (size_t i = 0; i < all.size(); ++i) failures[i] = std::max(failures[i], all[i].failure);
  };
  group.run();
  EXPECT_EQ(failures[0], "");
  EXPECT_EQ(failures[1], "was killed by SIGSEGV (Segmentation fault)");
}

TEST(GroupLost, KillsRanksWithoutGraceAndSaysWhy) {
  FakeGroup group;
  group.add("hang-term");
  group.add("hang-term");
  group.options.grace = 600;  // a rank that ignores TERM would live that long
  int turns = 0;
  bool running = false;
  group.options.onFrame = [&](const RankSpec&, const Json& frame) {
    running = running || frame["type"] == "case";
  };
  group.options.groupLost = [&]() -> std::string {
    return running && ++turns > 3 ? "node 3 (n3) was lost" : "";
  };
  const GroupOutcome outcome = group.run();
  for (const RankEnd& end : outcome.ends) {
    EXPECT_EQ(end.state, State::kError);
    EXPECT_EQ(end.signal, SIGKILL);
    EXPECT_THAT(end.error, HasSubstr("was stopped because node 3 (n3) was lost"));
  }
  EXPECT_THAT(group.left(), IsEmpty());
}

}  // namespace
}  // namespace muster::testing
