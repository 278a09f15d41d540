// SPDX-License-Identifier: Apache-2.0
// What a session does against the ABI's rules is its own error and says what its author has to change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {

using State = RankEnd::State;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Kinds of fakes/disobey.c.
enum Kind {
  kErrorAndOk,
  kClosesAll,
  kClosesAboveStderr,
  kDiesInClose,
  kTooManyArtifacts,
  kSameArtifact,
  kHidesArtifact
};

Json lastEnd(const GroupOutcome& outcome) {
  Json end;
  for (const Json& frame : outcome.of("case"))
    if (frame["event"] == "end") end = frame;
  return end;
}

TEST(Disobedience, AnErrorThatWasToldIsNotOk) {
  FakeGroup group;
  const Json end = lastEnd(group.run("disobey", kErrorAndOk));
  EXPECT_EQ(end["state"], "error");
  EXPECT_EQ(end["message"], "run() returned MUSTER_OK, but had called error(): the disk was full");
  EXPECT_EQ(end["remedy"], "make room");
}

TEST(Disobedience, AToldErrorIsOfItsOwnCaseOnly) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("disobey", kErrorAndOk, 2);
  EXPECT_EQ(outcome.caseStates(), (std::map<int, std::string>{{0, "error"}, {1, "error"}}));
  EXPECT_EQ(outcome.ends.at(0).state, State::kOk) << outcome.ends.at(0).error;
}

TEST(Disobedience, WhoClosesTheFramesIsToldSo) {
  FakeGroup group;
  const RankEnd end = group.run("disobey", kClosesAboveStderr).ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_EQ(end.exitCode, 1);
  EXPECT_THAT(end.outputTail, HasSubstr("a plugin must not close descriptors that it did not open"));
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Disobedience, ClosingStderrTooIsNotACrash) {
  FakeGroup group;
  const RankEnd end = group.run("disobey", kClosesAll).ends.at(0);
  EXPECT_EQ(end.signal, 0) << end.error;
  EXPECT_EQ(end.exitCode, 1);
  EXPECT_THAT(end.error, HasSubstr("in case run[n=0]"));
}

TEST(Disobedience, ADeathInCloseIsNamed) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("disobey", kDiesInClose);
  EXPECT_EQ(outcome.ends.at(0).signal, SIGSEGV);
  EXPECT_THAT(outcome.ends.at(0).error, HasSubstr("after its last case, in close()"));
  EXPECT_EQ(outcome.caseStates().at(0), "ok");
}

TEST(Disobedience, ADeathBeforeTheFirstCaseIsNamed) {
  FakeGroup group;
  EXPECT_THAT(group.run("constructor-abort").ends.at(0).error,
              HasSubstr("before its first case, while the plugin was loaded or in open()"));
}

TEST(Disobedience, ArtifactsAreCounted) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("disobey", kTooManyArtifacts);
  EXPECT_EQ(outcome.of("artifact").size(), 1000U);
  EXPECT_THAT(lastEnd(outcome)["message"].get<std::string>(),
              HasSubstr("refused artifact part1000: the rank has kept 1000 artifacts already"));
}

TEST(Disobedience, AnArtifactOfTheSameNameReplacesTheFirst) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("disobey", kSameArtifact);
  ASSERT_EQ(outcome.of("artifact").size(), 3U);
  EXPECT_EQ(readWhole(outcome.of("artifact")[0]["path"].get<std::string>()), "abc");
}

TEST(Disobedience, AUmaskHidesNoArtifact) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("disobey", kHidesArtifact);
  EXPECT_EQ(outcome.caseStates().at(0), "ok");
  ASSERT_EQ(outcome.of("artifact").size(), 1U);
  const std::filesystem::path path = outcome.of("artifact")[0]["path"].get<std::string>();
  using std::filesystem::perms;
  for (const auto& [at, wanted] :
       {std::pair{path, perms::owner_read}, {path.parent_path(), perms::owner_read | perms::owner_exec}})
    EXPECT_EQ(std::filesystem::status(at).permissions() & wanted, wanted) << at;
}

}  // namespace
}  // namespace muster::testing
