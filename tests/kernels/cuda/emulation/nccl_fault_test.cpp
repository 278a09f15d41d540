// SPDX-License-Identifier: Apache-2.0
// Communicators when NCCL, a rank or the network fails: real processes over the fake libnccl.so.2, whose
// scenario says what befalls each of them. None may hang, and each has to say what happened.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "kernels/cuda/nccl/process.h"
#include "tests/gpu/nccl_ranks.h"

namespace muster::gpu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kShort = 1;  ///< seconds: where a deadline is what is tested

/// All ranks are there: from here on a short deadline is enough on a busy machine too. "" or what went wrong.
std::string meet(Rank& me) {
  if (const Status here = me.store.set(fmt::format("here {}", me.rank), "yes"); !here.ok())
    return here.error().text();
  for (int rank = 0; rank < me.size; ++rank)
    if (const auto there = me.store.get(fmt::format("here {}", rank), 60); !there.ok())
      return there.error().text();
  me.spec.timeout = kShort;
  return "";
}

/// Sums of 1000 numbers until one fails; the error, or that all went well.
std::string sums(Rank& me, int runs) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  auto buffer = me.device->allocate(4000);
  if (!buffer.ok()) return buffer.error().text();
  for (int run = 0; run < runs; ++run) {
    Status done = (*group)->allReduce(**buffer, 0, 1000, Dtype::kF32, ReduceOp::kMax);
    if (done.ok()) done = (*group)->synchronize();
    if (done.ok()) continue;
    const std::string again = problemOf((*group)->barrier());
    return again == done.error().text() ? again : done.error().text() + ", then " + again;
  }
  return fmt::format("{} sums", runs);
}

std::string sumsWithShortDeadline(Rank& me) {
  const std::string alone = meet(me);
  return alone.empty() ? sums(me, 5) : alone;
}

/// The same, ended without teardown.
std::string barrierAndKilled(Rank& me) {
  if (const std::string alone = meet(me); !alone.empty()) return alone;
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  endWith(problemOf((*group)->barrier()));
}

/// Rank 1 comes when the others have waited for a while.
std::string lateRank(Rank& me) {
  if (me.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return sums(me, 2);
}

/// Rank 1 is told of one rank more.
std::string anotherSize(Rank& me) {
  if (const std::string alone = meet(me); !alone.empty()) return alone;
  if (me.rank == 1) me.spec.size = 3;
  return problemOf(me.join());
}

/// Two processes say that they are rank 0: the second waits in vain, the first finds its place taken.
std::string sameRank(Rank& me) {
  if (const std::string alone = meet(me); !alone.empty()) return alone;
  if (me.rank == 2) me.spec.rank = 1;
  return problemOf(me.join());
}

/// Rank 1 adds up fewer numbers than the others.
std::string otherCount(Rank& me) {
  if (const std::string alone = meet(me); !alone.empty()) return alone;
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  auto buffer = me.device->allocate(4000);
  if (!buffer.ok()) return buffer.error().text();
  const Status queued =
      (*group)->allReduce(**buffer, 0, me.rank == 1 ? 999 : 1000, Dtype::kF32, ReduceOp::kSum);
  return queued.ok() ? problemOf((*group)->synchronize()) : queued.error().text();
}

/// The store holds something that is no id.
std::string foreignId(Rank& me) {
  if (me.rank == 0) return problemOf(me.store.set("group/nccl-id", "short"));
  return problemOf(me.join());
}

std::string idThatNobodySets(Rank& me) {
  me.spec.timeout = kShort;
  me.spec.rank = 1;
  me.spec.size = 2;
  return problemOf(me.join());
}

/// Rank 1 does not take part; rank 0 aborts its wait from another thread.
std::string abortedWait(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  if (me.rank == 1) return problemOf(me.store.get("released", 60));
  std::thread helper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    (*group)->abort();
  });
  const Status waited = (*group)->barrier();
  helper.join();
  if (const Status told = me.store.set("released", "yes"); !told.ok()) return told.error().text();
  return problemOf(waited);
}

/// All add up until that fails; rank 0 aborts from another thread meanwhile, so that a call is in progress or
/// not.
std::string abortedAmongCalls(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  auto buffer = me.device->allocate(4);
  if (!buffer.ok()) return buffer.error().text();
  std::thread helper([&] {
    if (me.rank != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    (*group)->abort();
  });
  Status done;
  while (done.ok()) {
    done = (*group)->allReduce(**buffer, 0, 1, Dtype::kF32, ReduceOp::kMax);
    if (done.ok()) done = (*group)->synchronize();
  }
  helper.join();
  return done.error().text();
}

/// How many lines NCCL's log grows by in 20 sums, once ranks are connected.
std::string linesOfCalls(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  auto buffer = me.device->allocate(4);
  if (!buffer.ok()) return buffer.error().text();
  uint64_t before = 0;
  for (int run = 0; run <= 20; ++run) {
    for (const auto& step :
         {(*group)->allReduce(**buffer, 0, 1, Dtype::kF32, ReduceOp::kMax), (*group)->synchronize()})
      if (!step.ok()) return step.error().text();
    const auto log = cuda::NcclProcess::get().log();
    if (!log.ok()) return log.error().text();
    if (run == 0) before = log->lines;
    if (run == 20)
      return fmt::format("{} lines more than {}", log->lines - before, before > 0 ? "some" : "none");
  }
  return "";
}

/// Rank 0 ends its group while what it queued waits for rank 1, which never takes part.
std::string endedWhileQueued(Rank& me) {
  if (const std::string alone = meet(me); !alone.empty()) return alone;
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  if (me.rank == 1) return problemOf(me.store.get("released", 60));
  CollectiveSpec spec;
  spec.count = 100;
  auto work = (*group)->collective(spec);
  if (!work.ok()) return work.error().text();
  for (const auto& step : {(*work)->prepare(1), (*work)->run()})
    if (!step.ok()) return step.error().text();
  work = std::unique_ptr<Collective>();
  group = std::unique_ptr<Communicator>();
  return problemOf(me.store.set("released", "yes"));
}

/// What was checked of one sum: how many are wrong, and whose fault it is.
std::string checkedSum(Rank& me, CollectiveOp op) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  CollectiveSpec spec;
  spec.op = op;
  spec.count = 1000;
  auto work = (*group)->collective(spec);
  if (!work.ok()) return work.error().text();
  for (const auto& step : {(*work)->prepare(1), (*work)->run()})
    if (!step.ok()) return step.error().text();
  const auto found = (*work)->check();
  if (!found.ok()) return found.error().text();
  return fmt::format("{} wrong, source {}", found->wrong, found->source);
}

/// What carried a sum of 4 MB, by the log: "shm, 4 MB queued: ...".
std::string transports(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  auto buffer = me.device->allocate(4'000'000);
  if (!buffer.ok()) return buffer.error().text();
  for (const auto& step :
       {(*group)->allReduce(**buffer, 0, 1'000'000, Dtype::kF32, ReduceOp::kMax), (*group)->synchronize()})
    if (!step.ok()) return step.error().text();
  const auto uses = (*group)->transports();
  if (!uses.ok()) return uses.error().text();
  const auto settings = (*group)->settingsUse();
  return fmt::format(
      "{} x {}: {}; {}", uses->size(), uses->front().transport, uses->front().evidence,
      settings.ok() ? fmt::format("{} settings taken", settings->taken.size()) : settings.error().text());
}

const Roles& faultRoles() {
  static const Roles all = {
      {"sums", [](Rank& me) { return sums(me, 5); }},
      {"sums with a short deadline", sumsWithShortDeadline},
      {"barrier and killed", barrierAndKilled},
      {"late", lateRank},
      {"another size", anotherSize},
      {"same rank", sameRank},
      {"other count", otherCount},
      {"foreign id", foreignId},
      {"no id", idThatNobodySets},
      {"aborted wait", abortedWait},
      {"aborted among calls", abortedAmongCalls},
      {"lines of calls", linesOfCalls},
      {"ended while queued", endedWhileQueued},
      {"checked all_reduce", [](Rank& me) { return checkedSum(me, CollectiveOp::kAllReduce); }},
      {"checked all_gather", [](Rank& me) { return checkedSum(me, CollectiveOp::kAllGather); }},
      {"transports", transports},
  };
  return all;
}

TEST(NcclFaultRank, DISABLED_Plays) {
  playRole(faultRoles());
}

/// What `ranks` ranks say in a role while a scenario befalls some of them.
std::vector<std::string> faultWordsOf(const std::string& role, int ranks,
                                      const std::map<int, std::string>& scenarios = {}) {
  std::map<int, std::map<std::string, std::string>> variables;
  for (const auto& [rank, scenario] : scenarios) variables[rank] = {{"MUSTER_FAKE_NCCL", scenario}};
  return play({"NcclFaultRank.DISABLED_Plays"}, role, ranks, variables, 60);
}

TEST(NcclForming, WaitsForARankThatComesLate) {
  EXPECT_THAT(faultWordsOf("late", 3), Each("2 sums"));
}

/// The first that sees it names the rank; the others may see that one leave.
TEST(NcclForming, FailsAtOnceWhenARankDiesInIt) {
  auto words = faultWordsOf("sums", 3, {{1, "exit in init"}});
  EXPECT_EQ(words[1], "ended without a word");
  words.erase(words.begin() + 1);
  EXPECT_THAT(words, Each(HasSubstr("forming the group group: connecting the ranks: remote process exited")));
  EXPECT_THAT(words, Contains(HasSubstr("Connection closed by remote peer of rank 1")));
}

TEST(NcclForming, EndsAtItsDeadlineWhenNobodyNoticesThatARankDied) {
  const auto words = faultWordsOf("sums with a short deadline", 2, {{0, "unseen"}, {1, "exit in init"}});
  EXPECT_THAT(words[0], HasSubstr("connecting the ranks took longer than 1 s: a rank of the group is late"));
}

TEST(NcclForming, TellsNcclsWarningWhenRanksDisagreeOnTheirNumber) {
  const auto words = faultWordsOf("another size", 2, {{0, "unseen"}, {1, "unseen"}});
  EXPECT_THAT(words, Each(HasSubstr("took longer than 1 s")));
  EXPECT_THAT(words[0], HasSubstr("mismatch in rank count from procs 2 : 3"));
}

TEST(NcclForming, FailsForTheSecondOfTwoThatAreTheSameRank) {
  const auto words = faultWordsOf("same rank", 3, {{0, "unseen"}, {1, "unseen"}, {2, "unseen"}});
  EXPECT_THAT(words[0], HasSubstr("took longer than 1 s"));
  // Which of the two comes first is open.
  EXPECT_THAT((std::vector<std::string>{words[1], words[2]}),
              ::testing::UnorderedElementsAre(HasSubstr("took longer than 1 s"),
                                              AllOf(HasSubstr("initializing NCCL: unhandled system error"),
                                                    HasSubstr("another one is"))));
}

TEST(NcclForming, RefusesAnIdOfAnotherLength) {
  EXPECT_THAT(faultWordsOf("foreign id", 2)[1], HasSubstr("rank 0's unique id has 5 bytes, expected 128"));
}

TEST(NcclForming, EndsAtItsDeadlineWithoutAnId) {
  EXPECT_THAT(faultWordsOf("no id", 1), ElementsAre(HasSubstr("group/nccl-id")));
}

TEST(NcclCalls, AreWaitedForWhenNcclTakesThemLater) {
  EXPECT_THAT(faultWordsOf("sums", 2, {{0, "busy"}, {1, "busy"}}), Each("5 sums"));
}

TEST(NcclCalls, FailForAllWhenARankDiesInOne) {
  auto words = faultWordsOf("sums", 3, {{1, "exit in call 3"}});
  EXPECT_EQ(words[1], "ended without a word");
  words.erase(words.begin() + 1);
  EXPECT_THAT(words, Each(AllOf(HasSubstr("remote process exited or there was a network error"),
                                Not(HasSubstr(", then")))));
  EXPECT_THAT(words, Contains(HasSubstr("Connection closed by remote peer of rank 1")));
}

TEST(NcclCalls, EndAtTheirDeadlineWhenNobodyNoticesThatARankDied) {
  const auto words =
      faultWordsOf("sums with a short deadline", 3, {{0, "unseen"}, {1, "exit in call 3"}, {2, "unseen"}});
  for (const size_t rank : {0, 2})
    EXPECT_THAT(words[rank],
                AllOf(HasSubstr("waiting for queued work took longer than 1 s"), Not(HasSubstr(", then"))));
}

TEST(NcclCalls, FailAtOnceWithNcclsWords) {
  const auto words = faultWordsOf("sums", 2, {{0, "fail call 2 3"}});
  EXPECT_THAT(words[0], AllOf(HasSubstr("rank 0 of group: all_reduce: internal error"),
                              HasSubstr("a call that the scenario lets fail"), Not(HasSubstr(", then"))));
  EXPECT_THAT(words[1], HasSubstr("Connection closed by remote peer of rank 0"));
}

TEST(NcclCalls, FailWithAnErrorThatNcclMetOnItsOwnThreads) {
  const auto words = faultWordsOf("sums", 2, {{0, "fail after 2 2"}});
  EXPECT_THAT(words[0], AllOf(HasSubstr("unhandled system error"),
                              HasSubstr("NCCL's last warnings: an asynchronous failure of the scenario")));
  EXPECT_THAT(words[1], HasSubstr("remote process exited"));
}

TEST(NcclCalls, EndAtTheirDeadlineWhereNcclDoesNotReturn) {
  const auto words =
      faultWordsOf("sums with a short deadline", 2, {{0, "unseen;hang in call 3"}, {1, "unseen"}});
  EXPECT_THAT(words[0], AllOf(HasSubstr("all_reduce took longer than 1 s"), Not(HasSubstr(", then"))));
  EXPECT_THAT(words[1], HasSubstr("waiting for queued work took longer than 1 s"));
}

/// Long before their deadline, though the thread that made the call cannot look.
TEST(NcclCalls, ThatDoNotReturnFailWithAnErrorThatNcclMetMeanwhile) {
  const auto failed = faultWordsOf("sums", 2, {{0, "hang in call 3;fail after 3 2"}});
  EXPECT_THAT(failed[0], AllOf(HasSubstr("all_reduce: unhandled system error"), Not(HasSubstr(", then"))));
  EXPECT_THAT(failed[1], HasSubstr("Connection closed by remote peer of rank 0"));
  // The other one may have ended before this one's call.
  const auto left = faultWordsOf("sums", 2, {{0, "hang in call 3"}, {1, "exit in call 3"}});
  EXPECT_THAT(left[0], AllOf(HasSubstr("remote process exited"), Not(HasSubstr("took longer"))));
}

TEST(NcclCalls, EndAtTheirDeadlineWhenRanksMeanDifferentThings) {
  EXPECT_THAT(faultWordsOf("other count", 2, {{0, "unseen"}, {1, "unseen"}}),
              Each(HasSubstr("took longer than 1 s")));
}

TEST(NcclAbort, LetsGoOfAWaitAtOnce) {
  EXPECT_THAT(faultWordsOf("aborted wait", 2), ElementsAre(HasSubstr("the group was aborted"), ""));
}

TEST(NcclAbort, EndsACallThatDoesNotReturn) {
  EXPECT_THAT(faultWordsOf("aborted wait", 2, {{0, "hang in call 1"}}),
              ElementsAre(HasSubstr("the group was aborted"), ""));
}

TEST(NcclAbort, FreesNothingThatACallUses) {
  for (int round = 0; round < 5; ++round) {
    const auto words = faultWordsOf("aborted among calls", 2);
    EXPECT_THAT(words[0], HasSubstr("the group was aborted"));
    EXPECT_THAT(words[1], HasSubstr("Connection closed by remote peer of rank 0"));
  }
}

TEST(NcclAbort, IsLeftBehindWhereItHangs) {
  const auto words =
      faultWordsOf("barrier and killed", 2, {{0, "unseen;abort hangs"}, {1, "exit in call 1"}});
  EXPECT_THAT(words[0], HasSubstr("comparing values of all ranks took longer than 1 s"));
}

TEST(NcclEnd, DoesNotWaitForWorkThatNeverEnds) {
  EXPECT_THAT(faultWordsOf("ended while queued", 2), Each(""));
}

TEST(NcclEnd, AbortsWhereNcclDoesNotComeToAnEnd) {
  EXPECT_THAT(faultWordsOf("sums with a short deadline", 2, {{0, "finalize hangs"}}), Each("5 sums"));
}

TEST(NcclCheck, FindsDataThatWereDamagedOnTheWay) {
  const auto gathered = faultWordsOf("checked all_gather", 3, {{2, "wrong call 1"}});
  EXPECT_THAT(gathered, Each("1 wrong, source -1"));
}

TEST(NcclLogOfAGroup, ProvesTheTransport) {
  const auto words =
      faultWordsOf("transports", 2, {{0, "via SHM/direct/direct"}, {1, "via SHM/direct/direct"}});
  EXPECT_THAT(words, Each(AllOf(HasSubstr("1 x shm: NCCL's log: 1 x SHM/direct/direct; no counter to read"),
                                HasSubstr("2 settings taken"))));
}

/// A line per call, of TUNING, would be part of each measured latency.
TEST(NcclLogOfAGroup, GrowsByNoLinePerCall) {
  EXPECT_THAT(faultWordsOf("lines of calls", 2), Each("0 lines more than some"));
}

TEST(NcclLogOfAGroup, TellsGpuDirectFromIt) {
  const std::string hcas = "says NET/IB : Using [0]mlx5_0:1/RoCE [RO];";
  const auto words = faultWordsOf("transports", 2, {{0, hcas + "via NET/IB/0/GDRDMA"}, {1, "via P2P/CUMEM"}});
  EXPECT_THAT(words[0], HasSubstr("roce+gdr"));
  EXPECT_THAT(words[1], HasSubstr("1 x p2p: "));
}

TEST(NcclLogOfAGroup, IsMissedWhereNcclWritesNone) {
  EXPECT_THAT(faultWordsOf("transports", 2, {{0, "silent"}, {1, "silent"}}),
              Each(HasSubstr("NCCL wrote no log, so the transport is not confirmed")));
}

TEST(NcclLogOfAGroup, ContradictsASettingThatNcclDidNotTake) {
  const auto words = faultWordsOf("transports", 2, {{1, "takes NCCL_IB_DISABLE=0"}});
  EXPECT_THAT(words[0], HasSubstr("2 settings taken"));
  EXPECT_THAT(words[1], HasSubstr("NCCL_IB_DISABLE is 0, expected 1"));
}

}  // namespace
}  // namespace muster::gpu
