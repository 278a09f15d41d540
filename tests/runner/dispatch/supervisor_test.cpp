// SPDX-License-Identifier: Apache-2.0
// How ranks end under the supervisor: well, badly, together, never by themselves. Real muster-host, real
// libraries.
#include "runner/dispatch/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <set>

#include "runner/core/units.h"
#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {

using State = RankEnd::State;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Supervisor, EndsAHealthyRankOk) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("ok", 0, 2);
  const RankEnd& end = outcome.ends.at(0);
  EXPECT_EQ(end.state, State::kOk) << end.error;
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(end.casesEnded, 2);
  EXPECT_EQ(end.outputTail, "fake-ok prints this\nfake-ok prints this\n");
  EXPECT_EQ(readWhole(group.ranks[0].outputFile), end.outputTail);
  ASSERT_EQ(outcome.of("measurement").size(), 2U);
  EXPECT_EQ(outcome.of("measurement")[0]["samples"], Json({1.5}));
  EXPECT_EQ(outcome.frames.back()["type"], "done");
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, NamesRankDeviceSignalProgressAndRerunOfACrash) {
  FakeGroup group;
  const RankEnd end = group.run("crash").ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(end.lastProgress, "about to crash, 40%");
  EXPECT_THAT(end.outputTail, HasSubstr("last words of fake-crash"));
  EXPECT_EQ(end.error,
            "rank 0 (gpu0) was killed by SIGSEGV (Segmentation fault) in case run[n=0]; last progress: about "
            "to crash, "
            "40%; rerun it alone: " +
                end.rerun);
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, GivesARerunCommandThatReproducesTheEnd) {
  FakeGroup group;
  const RankEnd end = group.run("crash").ends.at(0);
  const ProcessResult again = runProcess({"/bin/sh", "-c", end.rerun});
  EXPECT_EQ(again.exitCode, 128 + SIGSEGV);
  EXPECT_THAT(again.out, HasSubstr(R"({"type":"case","case":0,"event":"begin"})"));
}

TEST(Supervisor, ShowsWhichCasesEndedBeforeADeath) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("crash-second", 0, 3);
  EXPECT_EQ(outcome.ends.at(0).state, State::kError);
  EXPECT_EQ(outcome.ends.at(0).casesEnded, 1);
  EXPECT_EQ(outcome.caseStates(), (std::map<int, std::string>{{0, "ok"}}));
  EXPECT_THAT(outcome.ends.at(0).error, HasSubstr("in case run[n=1]"));
}

TEST(Supervisor, RunsRanksInTurnInOneProcess) {
  FakeGroup group;
  for (int rank = 0; rank < 4; ++rank) group.add("in-turn", 0, 2);
  group.options.processes = 1;
  std::vector<int> order;
  group.options.onFrame = [&](const RankSpec& spec, const Json& frame) {
    if (frame["type"] == "done") order.push_back(spec.rank);
  };
  const GroupOutcome outcome = group.run();
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(outcome.ends.size(), 4u);
  for (size_t rank = 0; rank < 4; ++rank) {
    const RankEnd& end = outcome.ends[rank];
    EXPECT_EQ(end.state, State::kOk) << end.error;
    EXPECT_EQ(end.rank, static_cast<int>(rank));
    EXPECT_EQ(end.casesEnded, 2);
    EXPECT_THAT(end.rerun, HasSubstr(group.ranks[rank].requestFile.string()));
    EXPECT_THAT(end.rerun, ::testing::Not(HasSubstr(group.ranks[(rank + 1) % 4].requestFile.string())));
  }
  EXPECT_EQ(outcome.of("measurement").size(), 8u);
  for (const Json& frame : outcome.of("measurement"))
    EXPECT_EQ(frame["samples"], outcome.of("measurement")[0]["samples"]);
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, RunsRanksInTurnInSeveralProcesses) {
  FakeGroup group;
  for (int rank = 0; rank < 5; ++rank) group.add("in-turn");
  group.options.processes = 2;
  const GroupOutcome outcome = group.run();
  std::set<double> pids;
  for (const Json& frame : outcome.of("measurement")) pids.insert(frame["samples"][0].get<double>());
  EXPECT_EQ(outcome.of("measurement").size(), 5u);
  EXPECT_EQ(pids.size(), 2u);
  for (size_t rank = 0; rank < 5; ++rank) EXPECT_EQ(outcome.ends.at(rank).rank, static_cast<int>(rank));
}

TEST(Supervisor, GoesOnInAnotherProcessAfterARankThatDied) {
  FakeGroup group;
  for (int rank = 0; rank < 4; ++rank) group.add("in-turn", rank == 1 ? 1 : 0);
  group.options.processes = 1;
  group.options.failTogether = true;
  const GroupOutcome outcome = group.run();
  for (const size_t rank : {0, 2, 3}) EXPECT_EQ(outcome.ends.at(rank).state, State::kOk);
  const RankEnd& dead = outcome.ends.at(1);
  EXPECT_EQ(dead.state, State::kError);
  EXPECT_EQ(dead.signal, SIGABRT);
  EXPECT_THAT(dead.error, HasSubstr("rank 1 (gpu1) was killed by SIGABRT (Aborted) in case run[n=0]"));
  EXPECT_EQ(outcome.of("measurement").size(), 3u);
  EXPECT_NE(outcome.of("measurement")[0]["samples"], outcome.of("measurement")[1]["samples"]);
  EXPECT_EQ(outcome.of("measurement")[1]["samples"], outcome.of("measurement")[2]["samples"]);
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, GivesEachRankAProcessWhereThePluginWantsOne) {
  FakeGroup group;
  for (int rank = 0; rank < 3; ++rank) group.add("ok");
  group.options.processes = 1;
  const GroupOutcome outcome = group.run();
  ASSERT_EQ(outcome.ends.size(), 3u);
  for (const RankEnd& end : outcome.ends) {
    EXPECT_EQ(end.state, State::kOk) << end.error;
    EXPECT_EQ(end.outputTail, "fake-ok prints this\n");
  }
}

TEST(Supervisor, DoesNotTakeExitZeroForDone) {
  FakeGroup group;
  const RankEnd end = group.run("exit-early").ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_THAT(end.error, HasSubstr("exit code 0, but without `done`"));
}

TEST(Supervisor, ReportsTheExitCode) {
  FakeGroup group;
  const RankEnd end = group.run("exit-early", 3).ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_EQ(end.exitCode, 3);
  EXPECT_THAT(end.error, HasSubstr("ended with exit code 3"));
}

TEST(Supervisor, EndsAHangAtTheDeadline) {
  FakeGroup group;
  group.add("hang");
  const RankEnd end = group.runToDeadline().ends.at(0);
  EXPECT_EQ(end.state, State::kTimeout);
  EXPECT_THAT(end.error,
              HasSubstr("rank 0 (gpu0) timed out after " + formatQuantity(group.options.timeout, "s")));
  EXPECT_THAT(end.error, HasSubstr("last progress: waiting for a peer, 50%"));
  EXPECT_THAT(group.left(), IsEmpty());
}

/// Limits for ranks whose wall time says nothing: those that simulate.
GroupOptions watchedForHangs(GroupOptions options, double idle, double busy) {
  options.timeout = std::numeric_limits<double>::infinity();
  options.hang = {idle, busy};
  return options;
}

TEST(Supervisor, EndsARankThatSleepsWithoutAnySignOfWork) {
  FakeGroup group;
  group.options = watchedForHangs(group.options, 0.5, 60);
  const RankEnd end = group.run("hang").ends.at(0);
  EXPECT_EQ(end.state, State::kTimeout);
  EXPECT_THAT(end.error, HasSubstr("rank 0 (gpu0) made no progress for 500ms"));
  EXPECT_THAT(end.error, HasSubstr("last progress: waiting for a peer, 50%"));
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, LeavesARankAloneThatComputesForLongerThanItMaySleep) {
  FakeGroup group;
  group.options = watchedForHangs(group.options, 0.5, 60);
  const RankEnd end = group.run("busy", 1000).ends.at(0);
  EXPECT_EQ(end.state, State::kOk) << end.error;
}

TEST(Supervisor, EndsARankThatComputesWithoutEnd) {
  FakeGroup group;
  group.options = watchedForHangs(group.options, 60, 1);
  const RankEnd end = group.run("busy", 100000000).ends.at(0);
  EXPECT_EQ(end.state, State::kTimeout);
  EXPECT_THAT(end.error, HasSubstr("made no progress for 1s of CPU time"));
}

TEST(Supervisor, EndsOnlyTheRankThatHangs) {
  FakeGroup group;
  group.options = watchedForHangs(group.options, 0.5, 60);
  group.add("hang");
  group.add("busy", 1000);
  group.add("ok");
  const GroupOutcome outcome = group.run();
  EXPECT_EQ(outcome.ends.at(0).state, State::kTimeout);
  EXPECT_EQ(outcome.ends.at(1).state, State::kOk) << outcome.ends.at(1).error;
  EXPECT_EQ(outcome.ends.at(2).state, State::kOk) << outcome.ends.at(2).error;
}

TEST(Supervisor, KillsARankThatIgnoresTerm) {
  FakeGroup group;
  group.add("hang-term");
  const RankEnd end = group.runToDeadline().ends.at(0);
  EXPECT_EQ(end.state, State::kTimeout);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_THAT(end.error, HasSubstr("and was killed"));
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, EndsChildrenThatHideInSessionsOfTheirOwn) {
  FakeGroup group;
  group.add("children", 1);
  const RankEnd end = group.runToDeadline().ends.at(0);
  EXPECT_EQ(end.state, State::kTimeout);
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, EndsAndNamesChildrenThatAreLeftBehind) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("children");
  EXPECT_EQ(outcome.ends.at(0).state, State::kOk) << outcome.ends.at(0).error;
  ASSERT_EQ(outcome.of("log").size(), 1U);
  EXPECT_THAT(outcome.of("log")[0]["text"].get<std::string>(),
              HasSubstr("rank 0 (gpu0) left 4 process(es) running"));
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, DoesNotWaitForAnOrphanThatHoldsTheFrames) {
  FakeGroup group;
  const RankEnd end = group.run("orphan").ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, CleansUpAfterAGuardThatWasKilled) {
  FakeGroup group;
  const RankEnd end = group.run("kill-guard").ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_THAT(end.error, HasSubstr("lost its supervisor, which was killed by SIGKILL"));
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, CleansUpAfterAGuardThatHangs) {
  FakeGroup group;
  group.add("kill-guard", 1)["abandon_after"] = 0.1;
  const RankEnd end = group.runToDeadline().ends.at(0);
  EXPECT_EQ(end.state, State::kTimeout);
  EXPECT_THAT(end.error, HasSubstr("timed out after " + formatQuantity(group.options.timeout, "s") +
                                   ", and its supervisor hung and was killed"));
  EXPECT_THAT(group.left(), IsEmpty());
}

// On a machine so busy that the guard gets no CPU while its rank may still end, it has seen no survivor.
TEST(Supervisor, AGuardThatWasKeptFromItsWorkAbandonsNobody) {
  FakeGroup group;
  group.add("kill-guard", 2)["abandon_after"] = 0.3;
  const RankEnd end = group.runToDeadline().ends.at(0);
  EXPECT_EQ(end.state, State::kTimeout) << end.error;
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, KeepsTheEndsOfAFloodAndCountsTheRest) {
  FakeGroup group;
  const RankEnd end = group.run("flood", 40).ends.at(0);
  EXPECT_EQ(end.state, State::kOk) << end.error;
  const std::string kept = readWhole(group.ranks[0].outputFile);
  const uint64_t sent = 40ULL * 16384 * 63 + sizeof "the last line of the flood\n" - 1;
  EXPECT_EQ(end.outputDropped, sent - (16U << 20));
  EXPECT_EQ(kept.substr(0, 63), std::string(62, '0') + "\n");
  EXPECT_THAT(kept,
              HasSubstr("[muster: " + std::to_string(end.outputDropped) + " bytes of output dropped here]"));
  EXPECT_THAT(kept.substr(kept.size() - 200), HasSubstr("the last line of the flood"));
  EXPECT_THAT(end.outputTail, HasSubstr("the last line of the flood"));
  EXPECT_LE(end.outputTail.size(), 4096U);
}

TEST(Supervisor, TellsTheOthersWhyTheyAreStopped) {
  FakeGroup group;
  group.options.failTogether = true;
  group.add("hang");
  group.add("crash");
  const GroupOutcome outcome = group.run();
  EXPECT_EQ(outcome.ends.at(1).signal, SIGSEGV);
  EXPECT_EQ(outcome.ends.at(0).state, State::kError);
  EXPECT_THAT(outcome.ends.at(0).error,
              HasSubstr("rank 0 (gpu0) was stopped because rank 1 (gpu1) was killed by SIGSEGV"));
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, LetsIndependentRanksGoOn) {
  FakeGroup group;
  group.add("crash");
  group.add("ok", 300);
  const GroupOutcome outcome = group.run();
  EXPECT_EQ(outcome.ends.at(0).state, State::kError);
  EXPECT_EQ(outcome.ends.at(1).state, State::kOk) << outcome.ends.at(1).error;
}

TEST(Supervisor, StopsWhenTheRunIsCancelled) {
  FakeGroup group;
  std::atomic<bool> cancelled{false};
  group.options.cancelled = &cancelled;
  group.options.onFrame = [&](const RankSpec&, const Json& frame) {
    if (frame["type"] == "progress") cancelled = true;
  };
  const GroupOutcome outcome = group.run("ok", 60000);
  EXPECT_EQ(outcome.ends.at(0).state, State::kCancelled);
  EXPECT_THAT(outcome.ends.at(0).error, HasSubstr("was stopped because the run was cancelled"));
  EXPECT_EQ(outcome.caseStates(), (std::map<int, std::string>{{0, "cancelled"}}));
  EXPECT_THAT(group.left(), IsEmpty());
}

TEST(Supervisor, DoesNotBelieveACancellationThatNobodyOrdered) {
  FakeGroup group;
  const RankEnd end = group.run("crash", SIGTERM).ends.at(0);
  // The rank's own handler takes SIGTERM, so the plugin goes on and reports; the case then ends well.
  EXPECT_EQ(end.state, State::kOk) << end.error;
  FakeGroup second;
  second.options.onFrame = [&](const RankSpec&, const Json& frame) {
    if (frame["type"] != "progress") return;
    for (const int pid : second.left()) kill(pid, SIGTERM);
  };
  const RankEnd stopped = second.run("ok", 60000).ends.at(0);
  EXPECT_EQ(stopped.state, State::kError);
  EXPECT_THAT(stopped.error, HasSubstr("a signal that Muster did not send"));
}

TEST(Supervisor, TicksWhileRanksRunAndWhenItIsWoken) {
  FakeGroup group;
  const int wake = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  int ticks = 0;
  double last = -1;
  group.options.wakeFd = wake;
  group.options.onTick = [&](double seconds) {
    eventfd_t value = 0;
    eventfd_read(wake, &value);
    EXPECT_GE(seconds, last);
    last = seconds;
    ++ticks;
  };
  EXPECT_EQ(group.run("ok", 500).ends.at(0).state, State::kOk);
  EXPECT_GE(ticks, 3);
  close(wake);
}

TEST(Supervisor, GivesTheHostNoOtherDescriptor) {
  constexpr int kLeaked = 77;  // not close-on-exec, as a careless library would leave it
  ASSERT_EQ(dup2(STDERR_FILENO, kLeaked), kLeaked);
  FakeGroup group;
  int looked = 0;
  std::atomic<bool> cancelled = false;  // once the rank, which does not end by itself, was looked at
  group.options.cancelled = &cancelled;
  group.options.grace = 0.1;
  group.options.onFrame = [&](const RankSpec&, const Json& frame) {
    if (frame["type"] != "progress") return;
    cancelled = true;
    for (const int pid : group.left()) {
      const std::filesystem::path fds = "/proc/" + std::to_string(pid) + "/fd";
      std::error_code ignored;
      EXPECT_FALSE(
          std::filesystem::exists(std::filesystem::symlink_status(fds / std::to_string(kLeaked), ignored)));
      EXPECT_EQ(std::filesystem::read_symlink(fds / "0", ignored), "/dev/null");
      ++looked;
    }
  };
  (void)group.run("hang");
  EXPECT_GE(looked, 2);  // guard and rank
  close(kLeaked);
}

TEST(Supervisor, FailsWhenMusterHostCannotBeStarted) {
  FakeGroup group;
  group.options.hostExecutable = "/nowhere/muster-host";
  group.add("ok");
  const auto ends = runGroup(group.ranks, group.options);
  ASSERT_FALSE(ends.ok());
  EXPECT_THAT(ends.error().text(),
              HasSubstr("starting rank 0 (gpu0): cannot start muster-host: No such file"));
}

TEST(Supervisor, FailsWhenTheRequestCannotBeWritten) {
  FakeGroup group;
  group.add("ok");
  group.ranks[0].requestFile = "/nowhere/request.json";
  const auto ends = runGroup(group.ranks, group.options);
  ASSERT_FALSE(ends.ok());
  EXPECT_THAT(ends.error().text(), HasSubstr("/nowhere/request.json: cannot write it: No such file"));
}

TEST(Supervisor, SaysWhenTheOutputCannotBeKept) {
  FakeGroup group;
  group.add("ok");
  group.ranks[0].outputFile = "/nowhere/output.txt";
  const GroupOutcome outcome = group.run();
  EXPECT_EQ(outcome.ends.at(0).state, State::kOk);
  ASSERT_EQ(outcome.of("log").size(), 1U);
  EXPECT_THAT(outcome.of("log")[0]["text"].get<std::string>(),
              HasSubstr("cannot keep the output: /nowhere/output.txt: cannot write it: No such file"));
}

TEST(Supervisor, RefusesAPluginThatOthersMayWrite) {
  FakeGroup group;
  const auto copy = group.folder().path() / "fake-ok.so";
  std::filesystem::copy_file(fakeLibrary("ok"), copy);
  std::filesystem::permissions(copy, std::filesystem::perms(0666));
  group.add("ok")["plugin"] = copy;
  const RankEnd end = group.run().ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_THAT(end.error,
              HasSubstr("could not start: " + copy.string() + ": refused: the plugin is writable by others"));
}

TEST(Supervisor, ReportsAConstructorThatAborts) {
  FakeGroup group;
  const RankEnd end = group.run("constructor-abort").ends.at(0);
  EXPECT_EQ(end.state, State::kError);
  EXPECT_EQ(end.signal, SIGABRT);
  EXPECT_EQ(end.casesEnded, 0);
}

TEST(Supervisor, IgnoresTheReturnOfAForkedChild) {
  FakeGroup group;
  const GroupOutcome outcome = group.run("forked-return");
  EXPECT_EQ(outcome.ends.at(0).state, State::kOk) << outcome.ends.at(0).error;
  EXPECT_EQ(outcome.of("done").size(), 1U);
  EXPECT_EQ(outcome.of("measurement").size(), 1U);
  EXPECT_THAT(group.left(), IsEmpty());
}

}  // namespace
}  // namespace muster::testing
