// SPDX-License-Identifier: Apache-2.0
// Plugins that write their own bytes into the frames, and plugins that report false values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runner/core/text.h"
#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {

using State = RankEnd::State;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The raw fake with this kind must end as an error that says `why`, and leave nothing.
void expectBroken(int kind, const std::string& why) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("raw", kind);
  EXPECT_EQ(outcome.ends.at(0).state, State::kError) << kind;
  EXPECT_THAT(outcome.ends.at(0).error, HasSubstr(why)) << kind;
  EXPECT_LE(outcome.of("done").size(), 1U);
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(HostileFrames, DoneTwiceIsAnError) {
  expectBroken(0, "came after `done`");
}
TEST(HostileFrames, ATruncatedFrameIsAnError) {
  expectBroken(1, "ended within a frame");
}
TEST(HostileFrames, AnEndlessFrameIsAnError) {
  expectBroken(2, "a frame is longer than 1048576 bytes");
}
TEST(HostileFrames, AHugeFrameIsAnError) {
  expectBroken(3, "a frame is longer than 1048576 bytes");
}
TEST(HostileFrames, TextThatIsNotJsonIsAnError) {
  expectBroken(4, "a frame is not JSON");
}
TEST(HostileFrames, DeepNestingIsAnError) {
  expectBroken(5, "a frame is not JSON");
}
TEST(HostileFrames, AnUnknownTypeIsAnError) {
  expectBroken(6, "unknown type \"mystery\"");
}
TEST(HostileFrames, AMeasurementOfAnotherCaseIsAnError) {
  expectBroken(7, "of case 7 came while case 0 was open");
}
TEST(HostileFrames, SamplesThatAreNotNumbersAreAnError) {
  expectBroken(8, "samples are not a list of numbers");
}
TEST(HostileFrames, DoneInsideACaseIsAnError) {
  expectBroken(9, "it sent `done` inside case 0");
}
TEST(HostileFrames, InvalidUtf8IsAnError) {
  expectBroken(10, "a frame is not JSON");
}

TEST(HostileFrames, AnEndlessReasonIsShortenedInTheRecordAndForTheOtherNodes) {
  FakeGroup group;
  std::string failure;
  group.options.onStatus = [&](const std::vector<RankStatus>& all) {
    failure = std::max(failure, all[0].failure);
  };
  const RankEnd end = group.run("raw", 11).ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_THAT(end.error, HasSubstr("could not start: AAAA"));
  EXPECT_THAT(end.error, HasSubstr("AAA..."));
  EXPECT_LT(end.error.size(), 3 * kLongestReason);
  EXPECT_LT(failure.size(), 2 * kLongestReason);
}

/// Runs the "lies" fake with this kind of false report.
GroupOutcome runLies(int kind) {
  FakeGroup group;
  GroupOutcome outcome = group.run("lies", kind);
  EXPECT_EQ(outcome.ends.at(0).state, State::kOk) << outcome.ends.at(0).error;
  return outcome;
}

TEST(FalseReports, NonFiniteFiguresReachTheJudge) {
  EXPECT_EQ(runLies(0).of("measurement").at(0)["samples"], Json({"nan"}));
  EXPECT_EQ(runLies(1).of("measurement").at(0)["samples"], Json({"inf"}));
}

TEST(FalseReports, FalseFiguresAndNamesReachTheJudge) {
  EXPECT_EQ(runLies(2).of("measurement").at(0)["samples"], Json({-1.0}));
  EXPECT_THAT(runLies(3).of("measurement"), IsEmpty());
  EXPECT_EQ(runLies(4).of("measurement").at(0)["samples"], Json::array());
  EXPECT_EQ(runLies(5).of("measurement").at(0)["metric"], "undeclared");
  EXPECT_EQ(runLies(6).of("measurement").at(0)["unit"], "s");
}

/// A call that the host refuses makes the case an error that says why.
void expectRefused(int kind, const std::string& why) {
  const GroupOutcome outcome = runLies(kind);
  EXPECT_EQ(outcome.caseStates(), (std::map<int, std::string>{{0, "error"}})) << kind;
  EXPECT_THAT(outcome.of("case").at(1)["message"].get<std::string>(), HasSubstr(why)) << kind;
  EXPECT_THAT(outcome.of("measurement"), IsEmpty());
}

TEST(FalseReports, AMeasurementOfTheFirstAbiIsReadNoFurtherThanItGoes) {
  const GroupOutcome outcome = runLies(14);
  const auto measurements = outcome.of("measurement");
  ASSERT_EQ(measurements.size(), 1U);
  EXPECT_EQ(measurements[0]["samples"], Json({1.5}));
  EXPECT_FALSE(measurements[0].contains("times"));
}

TEST(FalseReports, ImpossibleCallsAreRefused) {
  expectRefused(7, "metric or unit is NULL");
  expectRefused(8, "1073741824 samples do not fit a frame");
  expectRefused(9, "refused a measurement: it is NULL");
}

TEST(FalseReports, ARefusalCannotBeHidden) {
  expectRefused(13, "refused a measurement: it is NULL");
}

TEST(FalseReports, InvalidTextIsRepaired) {
  const GroupOutcome outcome = runLies(10);
  EXPECT_EQ(outcome.of("measurement").at(0)["metric"], "value\xEF\xBF\xBD\n\x1b[31m");
}

TEST(FalseReports, UnknownStatusAndUnorderedCancellationAreErrors) {
  const GroupOutcome unknown = runLies(11);
  EXPECT_EQ(unknown.caseStates().at(0), "error");
  EXPECT_THAT(unknown.of("case").at(1)["message"].get<std::string>(), HasSubstr("unknown status 77"));
  const GroupOutcome cancelled = runLies(12);
  EXPECT_EQ(cancelled.caseStates().at(0), "error");
  EXPECT_THAT(cancelled.of("case").at(1)["message"].get<std::string>(),
              HasSubstr("without a request to stop"));
}

TEST(HugeText, IsCutInLogsAndRefusedInMeasurements) {
  FakeGroup group;
  const GroupOutcome logged = group.run("huge-text", 0);
  EXPECT_EQ(logged.caseStates().at(0), "ok");
  EXPECT_LT(logged.of("log").at(0)["text"].get<std::string>().size(), 20000U);
  FakeGroup second;
  const GroupOutcome measured = second.run("huge-text", 1);
  EXPECT_EQ(measured.caseStates().at(0), "error");
  EXPECT_THAT(measured.of("case").at(1)["message"].get<std::string>(),
              HasSubstr("at most 1048576 are taken"));
  FakeGroup third;
  EXPECT_EQ(third.run("huge-text", 2).caseStates().at(0), "error");
}

TEST(Exceptions, AtTheBorderAreErrorsOfTheCase) {
  for (const auto& [kind, text] : {std::pair{0, "thrown by fake-throws"}, std::pair{1, "of unknown type"}}) {
    FakeGroup group;
    const GroupOutcome outcome = group.run("throws", kind);
    EXPECT_EQ(outcome.ends.at(0).state, State::kOk) << outcome.ends.at(0).error;
    EXPECT_EQ(outcome.caseStates().at(0), "error");
    EXPECT_THAT(outcome.of("case").at(1)["message"].get<std::string>(), HasSubstr(text));
  }
}

TEST(Failures, CarryReasonAndRemedy) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("fails", 1);
  const Json end = outcome.of("case").at(1);
  EXPECT_EQ(end["state"], "error");
  EXPECT_EQ(end["message"], "the fake was told to fail");
  EXPECT_EQ(end["remedy"], "tell it to succeed");
  FakeGroup second;
  EXPECT_EQ(second.run("fails", 2).caseStates().at(0), "unsupported");
}

TEST(Borders, ArtifactsAndStoreWork) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("borders");
  EXPECT_EQ(outcome.caseStates().at(0), "ok") << dumpJson(outcome.of("case").at(1));
  const Json artifact = outcome.of("artifact").at(0);
  EXPECT_EQ(artifact["name"], "data.txt");
  EXPECT_EQ(artifact["bytes"], 4);
  EXPECT_EQ(readWhole(artifact["path"].get<std::string>()), "kept");
}

TEST(Borders, AnArtifactCannotLeaveItsFolder) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("borders", 1);
  EXPECT_EQ(outcome.caseStates().at(0), "error");
  EXPECT_THAT(outcome.of("artifact"), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(group.folder().path() / "escape"));
}

TEST(Borders, ARankOfSeveralWithoutAStoreIsToldWhy) {
  FakeGroup group;
  Json& context = group.add("borders", 2)["context"];
  context["world_size"] = 2;
  const GroupOutcome outcome = group.run();
  EXPECT_EQ(outcome.caseStates().at(0), "error");
  EXPECT_THAT(outcome.of("case").at(1)["message"].get<std::string>(),
              HasSubstr("rank 0 is one of a group of 2, and a rank that is started by hand has no store"));
  context["scenario"] = "/a/scenario.toml";
  EXPECT_EQ(group.run().caseStates().at(0), "unsupported") << "simulated ranks exchange nothing";
}

TEST(Borders, ARankWhoseStoreIsGoneSaysSo) {
  FakeGroup group;
  group.add("borders", 2)["context"]["world_size"] = 2;
  group.ranks[0].connectStore = []() -> Result<Fd> {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    close(ends[0]);
    return Fd(ends[1]);
  };
  const GroupOutcome gone = group.run();
  EXPECT_EQ(gone.caseStates().at(0), "error");
  EXPECT_THAT(gone.of("case").at(1)["message"].get<std::string>(),
              HasSubstr("rank 0 (gpu0) has lost the store of its group"));
}

TEST(Requests, CpusThatAreNotThereAreAnError) {
  FakeGroup group;
  group.add("ok")["affinity"] = {900000};
  const RankEnd end = group.run().ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_THAT(end.error, HasSubstr("could not start: cannot bind to CPUs 900000"));
}

TEST(Requests, ABrokenRequestIsAnError) {
  FakeGroup group;
  group.add("ok")["schema"] = 2;
  const RankEnd end = group.run().ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_THAT(end.error, HasSubstr("schema"));
}

}  // namespace
}  // namespace muster::testing
