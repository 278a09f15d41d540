// SPDX-License-Identifier: Apache-2.0
// NCCL with 2 and 4 ranks on one GPU: a host id of its own makes each rank a host to NCCL, so that they talk
// through sockets. This proves function and not speed. Each rank is a process that says what it found.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "tests/gpu/gpu.h"
#include "tests/gpu/nccl_ranks.h"

namespace muster::gpu {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

/// One collective, from its inputs to its check; what was wrong with it.
std::string wrongIn(Communicator& group, const CollectiveSpec& spec) {
  const std::string name =
      fmt::format("{} {} {} {}{}: ", collectiveOpName(spec.op), dtypeName(spec.dtype),
                  reduceOpName(spec.reduce), spec.count, spec.inPlace ? " in place" : "");
  auto work = group.collective(spec);
  if (!work.ok()) return name + work.error().text();
  if (const Status ready = (*work)->prepare(11); !ready.ok()) return name + ready.error().text();
  if (const Status ran = (*work)->run(); !ran.ok()) return name + ran.error().text();
  const auto found = (*work)->check();
  if (!found.ok()) return name + found.error().text();
  return found->wrong == 0 ? ""
                           : fmt::format("{}{} wrong, first at {}", name, found->wrong, found->firstElement);
}

constexpr CollectiveOp kOps[] = {
    CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
    CollectiveOp::kBroadcast, CollectiveOp::kReduce,    CollectiveOp::kAllToAll,
    CollectiveOp::kGather,    CollectiveOp::kScatter,   CollectiveOp::kSendRecv};
constexpr Dtype kDtypes[] = {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16, Dtype::kI8};

std::string everyCollective(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  std::string wrong;
  for (const CollectiveOp op : kOps)
    for (const Dtype dtype : kDtypes)
      for (const uint64_t count : {1, 3, 1000, 65537})
        for (const bool inPlace : {false, true}) {
          if (inPlace && !worksInPlace(op)) continue;
          CollectiveSpec spec;
          spec.op = op;
          spec.dtype = dtype;
          spec.count = count;
          spec.inPlace = inPlace;
          spec.root = me.size - 1;
          wrong += wrongIn(**group, spec);
        }
  return wrong;
}

std::string everyReduction(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  std::string wrong;
  for (const ReduceOp reduce :
       {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg})
    for (const Dtype dtype : kDtypes)
      for (const CollectiveOp op :
           {CollectiveOp::kAllReduce, CollectiveOp::kReduceScatter, CollectiveOp::kReduce}) {
        CollectiveSpec spec;
        spec.op = op;
        spec.dtype = dtype;
        spec.reduce = reduce;
        spec.count = 4099;
        wrong += wrongIn(**group, spec);
      }
  return wrong;
}

/// Four runs recorded as a graph; its replay must give the result anew.
std::string wrongInGraph(Communicator& group, CollectiveOp op) {
  CollectiveSpec spec;
  spec.op = op;
  spec.count = 5000;
  auto work = group.collective(spec);
  if (!work.ok()) return work.error().text();
  if ((*work)->replay().ok()) return "replayed what was not recorded";
  // The first run connects.
  for (const auto& step : {(*work)->prepare(3), (*work)->run(), (*work)->record(4), (*work)->prepare(4)})
    if (!step.ok()) return step.error().text();
  const auto took = group.time([&] { return (*work)->replay(); });
  if (!took.ok()) return took.error().text();
  if (!(*took > 0)) return fmt::format("took {} s", *took);
  const auto found = (*work)->check();
  if (!found.ok()) return found.error().text();
  return found->wrong == 0 ? "" : fmt::format("{}: {} wrong", collectiveOpName(op), found->wrong);
}

std::string graphs(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  std::string wrong;
  for (const CollectiveOp op : {CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kAllToAll})
    wrong += wrongInGraph(**group, op);
  return wrong;
}

constexpr int kCulprit = 1;

/// Rank kCulprit puts in other values than it should; how many are wrong, and whom this rank takes for the
/// source.
std::string sourceOf(Rank& me, CollectiveOp op) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  CollectiveSpec spec;
  spec.op = op;
  spec.count = 1000;
  auto work = (*group)->collective(spec);
  if (!work.ok()) return work.error().text();
  for (const auto& step : {(*work)->prepare(me.rank == kCulprit ? 99 : 3), (*work)->run()})
    if (!step.ok()) return step.error().text();
  const auto found = (*work)->check();
  if (!found.ok()) return found.error().text();
  return fmt::format("{}, source {}", found->wrong > 0 ? "wrong" : "right", found->source);
}

/// The mean of equal values, of 2 or 4 ranks, has the same bits. In two buckets, the later one first.
std::string gradients(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  constexpr uint64_t kCount = 100003, kFirst = 50000;
  auto mean = me.device->allocate(kCount * 4);
  auto wanted = me.device->allocate(kCount * 4);
  if (!mean.ok() || !wanted.ok()) return problemOf(mean) + problemOf(wanted);
  for (const auto& step :
       {me.device->fillNormal(**mean, Dtype::kF32, 5), me.device->fillNormal(**wanted, Dtype::kF32, 5),
        (*group)->allReduce(**mean, kFirst, kCount - kFirst, Dtype::kF32, ReduceOp::kAvg),
        (*group)->allReduce(**mean, 0, kFirst, Dtype::kF32, ReduceOp::kAvg), (*group)->join()})
    if (!step.ok()) return step.error().text();
  const auto same = me.device->compareBits(**mean, **wanted, Dtype::kF32);
  if (!same.ok()) return same.error().text();
  if (same->wrong > 0) return fmt::format("{} of the mean differ", same->wrong);
  const Status tooMany = (*group)->allReduce(**mean, 1, kCount, Dtype::kF32, ReduceOp::kSum);
  return tooMany.ok() ? "added up what lies behind the buffer" : "";
}

/// Everybody gets the root's bytes.
std::string parameters(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  constexpr uint64_t kCount = 100003;
  auto mine = me.device->allocate(kCount * 4);
  auto roots = me.device->allocate(kCount * 4);
  if (!mine.ok() || !roots.ok()) return problemOf(mine) + problemOf(roots);
  for (const auto& step :
       {me.device->fillNormal(**mine, Dtype::kF32, 100 + static_cast<uint64_t>(me.rank)),
        me.device->fillNormal(**roots, Dtype::kF32, 101), (*group)->broadcast(**mine, kCount * 4, 1)})
    if (!step.ok()) return step.error().text();
  const auto same = me.device->compareBits(**mine, **roots, Dtype::kF32);
  if (!same.ok()) return same.error().text();
  return same->wrong == 0 ? "" : fmt::format("{} differ from the root's", same->wrong);
}

std::string exchanges(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  constexpr uint64_t kBytes = 1 << 20;
  const int peer = me.rank ^ 1;
  auto mine = me.device->allocate(kBytes);
  auto theirs = me.device->allocate(kBytes);
  if (!mine.ok() || !theirs.ok()) return problemOf(mine) + problemOf(theirs);
  for (const auto& step :
       {me.device->fillPattern(**mine, 1000 + static_cast<uint64_t>(me.rank)), me.device->synchronize(),
        (*group)->exchange(peer, **mine, kBytes, **theirs, kBytes), (*group)->synchronize()})
    if (!step.ok()) return step.error().text();
  const auto found = me.device->checkPattern(**theirs, 1000 + static_cast<uint64_t>(peer));
  if (!found.ok()) return found.error().text();
  if (found->wrong > 0) return fmt::format("{} B of rank {}'s are wrong", found->wrong, peer);
  const Status withItself = (*group)->exchange(me.rank, **mine, 1, **theirs, 1);
  return withItself.ok() ? "exchanged with itself" : problemOf((*group)->barrier());
}

std::string largestValues(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  std::vector<double> values(5000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i * (1 + static_cast<size_t>(me.rank)));
  const auto largest = (*group)->maxOverRanks(values);
  if (!largest.ok()) return largest.error().text();
  for (size_t i = 0; i < values.size(); ++i)
    if ((*largest)[i] != static_cast<double>(i * static_cast<size_t>(me.size)))
      return fmt::format("value {} is {}", i, (*largest)[i]);
  return "";
}

/// "socket carried over 1 MB; settings proven".
std::string transportsAndSettings(Rank& me) {
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  CollectiveSpec spec;
  spec.count = 1 << 20;
  if (const std::string wrong = wrongIn(**group, spec); !wrong.empty()) return wrong;
  const auto uses = (*group)->transports();
  if (!uses.ok()) return uses.error().text();
  const auto settings = (*group)->settingsUse();
  if (!settings.ok()) return settings.error().text();
  if (me.rank == 0)
    std::printf("%s; %s\n", (*group)->implementation().c_str(), uses->front().evidence.c_str());
  return fmt::format("{} carried {}; settings {}", uses->front().transport,
                     uses->front().bytes > 1e6 ? "over 1 MB" : "too little",
                     settings->taken.empty() ? "not proven" : "proven");
}

/// The last rank ends without a word. The others: what their next two barriers say.
std::string aLostRank(Rank& me) {
  me.spec.timeout = 10;
  auto group = me.join();
  if (!group.ok()) return group.error().text();
  if (const Status together = (*group)->barrier(); !together.ok()) return together.error().text();
  if (me.rank == me.size - 1) _exit(0);
  const std::string first = problemOf((*group)->barrier());
  const std::string second = problemOf((*group)->barrier());
  return first == second ? first : "first " + first + ", then " + second;
}

std::string aRankThatNeverComes(Rank& me) {
  me.spec.timeout = 5;
  if (me.rank == me.size - 1) return "";
  return problemOf(me.join());
}

const Roles& roles() {
  static const Roles all = {
      {"collectives", everyCollective},
      {"reductions", everyReduction},
      {"graphs", graphs},
      {"wrong all_reduce", [](Rank& me) { return sourceOf(me, CollectiveOp::kAllReduce); }},
      {"wrong all_gather", [](Rank& me) { return sourceOf(me, CollectiveOp::kAllGather); }},
      {"gradients", gradients},
      {"parameters", parameters},
      {"exchanges", exchanges},
      {"values", largestValues},
      {"transports", transportsAndSettings},
      {"lost", aLostRank},
      {"missing", aRankThatNeverComes}};
  return all;
}

/// What a process that plays one rank does.
TEST(NcclRank, DISABLED_Plays) {
  playRole(roles());
}

std::vector<std::string> wordsOf(const std::string& role, int ranks) {
  return play({"NcclRank.DISABLED_Plays"}, role, ranks);
}

class Nccl : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, ::testing::Values(2, 4));

TEST_P(Nccl, IsExactInEveryCollectiveAndType) {
  EXPECT_THAT(wordsOf("collectives", GetParam()), Each(""));
}
TEST_P(Nccl, IsExactInEveryReduction) {
  EXPECT_THAT(wordsOf("reductions", GetParam()), Each(""));
}
TEST_P(Nccl, RunsAsGraphs) {
  EXPECT_THAT(wordsOf("graphs", GetParam()), Each(""));
}

/// Of what was only moved, everybody who got it asks the sender for its input. The culprit expects other
/// values than all others; of two, each takes the other for it.
TEST_P(Nccl, NamesARankThatSentWrongValues) {
  const auto words = wordsOf("wrong all_gather", GetParam());
  for (int rank = 0; rank < GetParam(); ++rank)
    EXPECT_EQ(words[static_cast<size_t>(rank)],
              rank == kCulprit && GetParam() == 2 ? "wrong, source 0" : "wrong, source 1");
}

/// Of a sum, by comparing the inputs behind it: that takes more than two.
TEST_P(Nccl, NamesARankThatPutWrongValuesIntoASum) {
  const auto words = wordsOf("wrong all_reduce", GetParam());
  for (int rank = 0; rank < GetParam(); ++rank)
    if (rank == kCulprit || GetParam() == 2)
      EXPECT_THAT(words[static_cast<size_t>(rank)], HasSubstr("wrong"));
    else
      EXPECT_EQ(words[static_cast<size_t>(rank)], "wrong, source 1");
}

TEST_P(Nccl, AddsUpGradients) {
  EXPECT_THAT(wordsOf("gradients", GetParam()), Each(""));
}
TEST_P(Nccl, SpreadsParameters) {
  EXPECT_THAT(wordsOf("parameters", GetParam()), Each(""));
}
TEST_P(Nccl, ExchangesWithAPeer) {
  EXPECT_THAT(wordsOf("exchanges", GetParam()), Each(""));
}
TEST_P(Nccl, TellsTheLargestValueOfAllRanks) {
  EXPECT_THAT(wordsOf("values", GetParam()), Each(""));
}
TEST_P(Nccl, ProvesTransportAndSettings) {
  EXPECT_THAT(wordsOf("transports", GetParam()), Each("socket carried over 1 MB; settings proven"));
}

/// By NCCL's own error, or by the deadline at the latest; the group stays broken.
TEST_P(Nccl, OutlivesARankThatIsLost) {
  auto words = wordsOf("lost", GetParam());
  EXPECT_EQ(words.back(), "ended without a word");
  words.pop_back();
  EXPECT_THAT(words, Each(HasSubstr("comparing values of all ranks")));
}
TEST_P(Nccl, GivesUpOnARankThatNeverComes) {
  auto words = wordsOf("missing", GetParam());
  EXPECT_EQ(words.back(), "");
  words.pop_back();
  // The first that gives up is gone for the others.
  EXPECT_THAT(words, Contains(HasSubstr("connecting the ranks took longer than 5 s")));
  EXPECT_THAT(words, Each(HasSubstr("forming the group group: connecting the ranks")));
}

}  // namespace
}  // namespace muster::gpu
