// SPDX-License-Identifier: Apache-2.0
// The helper that runs beside stages: its frames arrive by polling, it stops when asked and is killed when it
// does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {

using State = RankEnd::State;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Starts the one rank of `group` and polls until a frame of `type` has come.
std::unique_ptr<BackgroundRank> startUntil(FakeGroup& group, const std::string& type) {
  const auto seen = std::make_shared<bool>(false);  // frames come after this function, too
  group.options.onFrame = [seen, type](const RankSpec&, const Json& frame) {
    *seen = *seen || frame["type"] == type;
  };
  auto rank = BackgroundRank::start(group.ranks.at(0), group.options);
  if (!rank.ok()) return nullptr;
  while (!*seen && (*rank)->running()) {
    pollfd fd{(*rank)->fd(), POLLIN, 0};
    poll(&fd, 1, 1000);
    (*rank)->poll();
  }
  return std::move(*rank);
}

TEST(BackgroundRank, SendsFramesAndStopsWhenAsked) {
  FakeGroup group;
  group.add("ok", 600000);
  const auto rank = startUntil(group, "progress");
  ASSERT_NE(rank, nullptr);
  EXPECT_TRUE(rank->running());
  const RankEnd end = rank->stop();
  EXPECT_EQ(end.state, State::kOk) << end.error;
  EXPECT_FALSE(rank->running());
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(BackgroundRank, IsKilledWhenItDoesNotStop) {
  FakeGroup group;
  group.add("hang-term");
  const auto rank = startUntil(group, "progress");
  ASSERT_NE(rank, nullptr);
  const RankEnd end = rank->stop();
  EXPECT_EQ(end.state, State::kError);
  EXPECT_THAT(end.error, HasSubstr("did not stop on request and was killed"));
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(BackgroundRank, TellsOfADeathOfItsOwn) {
  FakeGroup group;
  group.add("crash");
  const auto rank = startUntil(group, "done");
  ASSERT_NE(rank, nullptr);
  EXPECT_FALSE(rank->running());
  EXPECT_THAT(rank->stop().error, HasSubstr("was killed by SIGSEGV"));
}

TEST(BackgroundRank, LeavesNothingWhenItIsDropped) {
  FakeGroup group;
  group.add("children", 1);
  startUntil(group, "progress").reset();
  EXPECT_THAT(group.left(), IsEmpty());
}

}  // namespace
}  // namespace muster::testing
