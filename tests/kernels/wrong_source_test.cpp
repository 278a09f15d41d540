// SPDX-License-Identifier: Apache-2.0
// From whom wrong data came, as the ranks of a group of four tell it: threads that exchange bytes in memory.
#include "kernels/checks/wrong_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 4;
constexpr uint64_t kCount = 10;

CollectiveSpec specOf(CollectiveOp op, bool inPlace = false) {
  CollectiveSpec spec;
  spec.op = op;
  spec.count = kCount;
  spec.inPlace = inPlace;
  return spec;
}

ExactValues exact() {
  return {Dtype::kF32, ReduceOp::kSum, kRanks, 1};
}

struct Group {
  std::set<int> sick;     ///< ranks whose inputs are wrong
  std::set<int> garbled;  ///< ranks of which all that they send arrives with a bit that is stuck
  int deaf = -1;          ///< the rank at which alone rank 1's words arrive so ...
  int damagedAt = 0;      ///< ... in that exchange, counted from 1; 0: in all
  std::map<int, std::pair<uint64_t, uint64_t>> wrong;  ///< by rank, its first and last wrong element
  std::vector<std::vector<std::byte>> sent = std::vector<std::vector<std::byte>>(kRanks);
  std::barrier<> all{kRanks};
  int exchanges = 0;  ///< of rank 0

  explicit Group(std::map<int, std::pair<uint64_t, uint64_t>> found) : wrong(std::move(found)) {}
};

class RankInGroup : public RankExchange {
 public:
  RankInGroup(Group& group, int rank) : group_(group), rank_(rank) {}

  Result<double> inputAt(uint64_t index) override {
    EXPECT_LT(index, kCount * kRanks);
    return exact().input(rank_, index) + (group_.sick.contains(rank_) ? 1 : 0);
  }
  Status exchange(CollectiveOp op, std::span<const std::byte> own, std::span<std::byte> all) override {
    group_.exchanges += rank_ == 0 ? 1 : 0;
    group_.sent[static_cast<size_t>(rank_)].assign(own.begin(), own.end());
    group_.all.arrive_and_wait();
    const size_t block = all.size() / kRanks;
    for (int from = 0; from < kRanks; ++from) {
      const auto& said = group_.sent[static_cast<size_t>(from)];
      const size_t begin = op == CollectiveOp::kAllToAll ? static_cast<size_t>(rank_) * block : 0;
      const bool garbled =
          from != rank_ && (group_.garbled.contains(from) ||
                            (from == 1 && rank_ == group_.deaf &&
                             (group_.damagedAt == 0 || group_.damagedAt == group_.exchanges)));
      for (size_t i = 0; i < block; ++i)
        all[static_cast<size_t>(from) * block + i] =
            said[begin + i] | (garbled ? std::byte{0x08} : std::byte{0});
    }
    group_.all.arrive_and_wait();
    return {};
  }

 private:
  Group& group_;
  int rank_;
};

/// What each rank says; "2, input right".
std::vector<std::string> sourcesIn(Group& group, const CollectiveSpec& spec) {
  std::vector<std::string> said(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      CollectiveMismatch own;
      if (const auto found = group.wrong.find(rank); found != group.wrong.end()) {
        own.wrong = found->second.first == found->second.second ? 1 : 2;
        own.firstElement = found->second.first;
        own.lastElement = found->second.second;
      }
      RankInGroup exchange(group, rank);
      const Status status = findWrongSource(spec, exact(), rank, exchange, own);
      said[static_cast<size_t>(rank)] =
          status.ok() ? std::to_string(own.source) + (own.inputRight ? ", input right" : "")
                      : status.error().text();
    });
  for (std::thread& rank : ranks) rank.join();
  return said;
}

constexpr std::pair<uint64_t, uint64_t> kThird{3, 3};
constexpr std::pair<uint64_t, uint64_t> kOfRank1{13, 17};    ///< of blocks: both are rank 1's
constexpr std::pair<uint64_t, uint64_t> kOfSeveral{13, 33};  ///< rank 1's and rank 3's

TEST(WrongSource, IsTheOnlyRankWhoseInputOfAReductionDiffers) {
  Group one({{0, kThird}, {1, kThird}, {2, kThird}, {3, kThird}});
  one.sick = {2};
  EXPECT_THAT(sourcesIn(one, specOf(CollectiveOp::kAllReduce)), Each("2"));
  Group two({{0, kThird}});
  two.sick = {1, 2};
  EXPECT_EQ(sourcesIn(two, specOf(CollectiveOp::kAllReduce))[0], "-1") << "two differ";
  Group none({{0, kThird}});
  EXPECT_EQ(sourcesIn(none, specOf(CollectiveOp::kAllReduce))[0], "-1") << "the arithmetic was wrong";
  Group unheard({{0, kThird}});
  unheard.sick = {2};
  unheard.garbled = {3};
  EXPECT_EQ(sourcesIn(unheard, specOf(CollectiveOp::kAllReduce))[0], "-1") << "rank 3 may be another";
}

TEST(WrongSource, OfWhatOthersPassOnIsTheOwnerOnlyIfItsInputIsWrong) {
  const CollectiveSpec spec = specOf(CollectiveOp::kAllGather);
  Group later({{0, kOfRank1}, {2, kOfRank1}});
  EXPECT_THAT(sourcesIn(later, spec), ElementsAre("-1, input right", "-1", "-1, input right", "-1"));
  Group other({{0, kOfRank1}});
  other.sick = {2};
  EXPECT_EQ(sourcesIn(other, spec)[0], "-1, input right") << "another's input is not in it";
  Group both({{0, kOfRank1}});
  both.sick = {1, 2};
  EXPECT_EQ(sourcesIn(both, spec)[0], "1");
}

/// What a faulty sender damages on its way to others is damaged there, too, when they ask for it.
TEST(WrongSource, IsTheOnlyRankWhoseAnswersArriveDamaged) {
  for (const CollectiveOp op :
       {CollectiveOp::kAllGather, CollectiveOp::kAllReduce, CollectiveOp::kBroadcast}) {
    // Rank 1 passes rank 0's block on.
    Group one({{2, {3, 3}}, {3, {3, 3}}});
    one.garbled = {1};
    EXPECT_THAT(sourcesIn(one, specOf(op)), ElementsAre("-1", "-1", "1", "1")) << collectiveOpName(op);
    Group two({{2, {3, 3}}, {3, {3, 3}}});
    two.garbled = {0, 1};
    EXPECT_THAT(sourcesIn(two, specOf(op)), Each("-1")) << collectiveOpName(op);
  }
}

/// It gets no answers, as nobody understands what it asks, nor that its result is wrong.
TEST(WrongSource, IsUnknownToARankThatNobodyUnderstands) {
  Group group({{1, kThird}});
  group.garbled = {1};
  const auto heard = HasSubstr("do not arrive as they were sent");
  for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kAllReduce})
    EXPECT_THAT(sourcesIn(group, specOf(op)), ElementsAre(heard, "-1", heard, heard)) << collectiveOpName(op);
}

TEST(WrongSource, OfWhatGoesStraightToItsReceiverIsWhoSentAllThatIsWrong) {
  const CollectiveSpec spec = specOf(CollectiveOp::kAllToAll);
  Group group({{0, kOfRank1}, {2, kOfRank1}, {3, kOfSeveral}});
  EXPECT_THAT(sourcesIn(group, spec),
              ElementsAre("1, input right", "-1", "1, input right", "-1, input right"));
}

TEST(WrongSource, IsTheRankThatAloneExpectsSomethingElse) {
  for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kAllReduce}) {
    Group group({{2, kThird}});
    group.sick = {0, 1, 3};
    EXPECT_EQ(sourcesIn(group, specOf(op))[2], "2") << collectiveOpName(op);
  }
}

TEST(WrongSource, OfABroadcastInPlaceIsNotTheReceiverForInputsThatItOverwrote) {
  Group group({{2, kThird}});
  group.sick = {0, 1, 3};
  EXPECT_EQ(sourcesIn(group, specOf(CollectiveOp::kBroadcast, true))[2], "0") << "the root";
}

TEST(WrongSource, IsNotLookedForWhereAReductionInPlaceUsedItsInputsUp) {
  Group group({{0, kThird}});
  group.sick = {1};
  EXPECT_THAT(sourcesIn(group, specOf(CollectiveOp::kAllReduce, true)), Each("-1"));
  EXPECT_EQ(group.exchanges, 0);
}

TEST(WrongSource, IsNotAskedForWhereNobodyFoundAnything) {
  Group group({});
  EXPECT_THAT(sourcesIn(group, specOf(CollectiveOp::kAllReduce)), Each("-1"));
  EXPECT_EQ(group.exchanges, 2);
}

/// All end alike; or who heard it too late to tell the others ends alone, and they lose it.
TEST(WrongSource, IsNoReasonToGoOnWhereOneWordIsDamaged) {
  for (const int damagedAt : {0, 1, 2}) {
    Group group({});
    group.deaf = 3;
    group.damagedAt = damagedAt;
    const auto said = sourcesIn(group, specOf(CollectiveOp::kAllReduce));
    for (int rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(said[static_cast<size_t>(rank)].find("do not arrive as they were sent") != std::string::npos,
                damagedAt < 2 || rank == group.deaf)
          << damagedAt << ": " << said[static_cast<size_t>(rank)];
    EXPECT_EQ(group.exchanges, damagedAt < 2 ? 4 : 2);
  }
}

/// An index that arrives damaged is none, whatever it would point to, and nobody waits for an answer in vain.
TEST(WrongSource, IsNotReadBeyondTheInput) {
  Group group({{1, kThird}});
  group.garbled = {1};
  EXPECT_EQ(sourcesIn(group, specOf(CollectiveOp::kReduceScatter))[1], "-1");
  EXPECT_EQ(group.exchanges, 4);
}

}  // namespace
}  // namespace muster
