// SPDX-License-Identifier: Apache-2.0
// A rank that does not die of KILL. A zombie whose tracer does not collect it looks to its parent like a
// process stuck in the kernel: alive, and deaf to every signal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "runner/core/units.h"
#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The rank below the guard, by its name.
int rankOf(const FakeGroup& group) {
  for (const int pid : group.left())
    if (readWhole("/proc/" + std::to_string(pid) + "/comm") == "muster-rank\n") return pid;
  return -1;
}

TEST(Abandoned, ARankThatSurvivesKillIsAbandonedAndNamed) {
  FakeGroup group;
  group.add("hang-term")["abandon_after"] = 0.3;
  int traced = -1;
  group.options.onFrame = [&](const RankSpec&, const Json& frame) {
    if (frame["type"] != "progress") return;
    traced = rankOf(group);
    if (ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) != 0) traced = -1;
  };
  const GroupOutcome outcome = group.runToDeadline();
  ASSERT_GT(traced, 0) << "this test needs ptrace on its own descendants";
  EXPECT_EQ(outcome.ends.at(0).state, RankEnd::State::kAbandoned);
  EXPECT_THAT(outcome.ends.at(0).error,
              HasSubstr("timed out after " + formatQuantity(group.options.timeout, "s") + ", and process " +
                        std::to_string(traced) + " (muster-rank, state "));
  EXPECT_THAT(outcome.ends.at(0).error, HasSubstr("did not end within 0.3 s of SIGKILL"));
  EXPECT_EQ(waitpid(traced, nullptr, __WALL), traced);
  EXPECT_THAT(group.left(), IsEmpty());
}

}  // namespace
}  // namespace muster::testing
