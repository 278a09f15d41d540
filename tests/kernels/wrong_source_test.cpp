// SPDX-License-Identifier: Apache-2.0
// Whose input was wrong, as each rank of a group of four tells it.
#include "kernels/checks/wrong_source.h"

#include <gtest/gtest.h>

#include <set>

namespace muster {
namespace {

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

/// A group in which the inputs of some ranks are wrong, and one rank found a wrong result.
struct FakeGroup : RankExchange {
  std::set<int> sick;          ///< ranks
  WrongResult foreign;         ///< what rank 3 says
  bool isOverwritten = false;  ///< the inputs are used up: nothing is what it was
  int asked = 0;

  Result<std::vector<WrongResult>> results(const WrongResult& own) override {
    return std::vector<WrongResult>{own, own, own, foreign.elements > 0 ? foreign : own};
  }
  Result<std::vector<double>> inputs(uint64_t index) override {
    ++asked;
    std::vector<double> all;
    for (int rank = 0; rank < kRanks; ++rank)
      all.push_back(exact().input(rank, index) + (sick.contains(rank) || isOverwritten ? 1 : 0));
    return all;
  }
};

/// What rank `rank` makes of a wrong element `element` of its result.
int sourceOf(const CollectiveSpec& spec, FakeGroup& group, int rank, uint64_t element = 13) {
  CollectiveMismatch own;
  own.wrong = 1;
  own.firstElement = element;
  const auto source = findWrongSource(spec, exact(), rank, own, group);
  EXPECT_TRUE(source.ok()) << source.error().text();
  return source.ok() ? *source : -2;
}

TEST(WrongSource, IsTheOnlyRankWhoseInputOfAReductionDiffers) {
  FakeGroup group;
  group.sick = {2};
  EXPECT_EQ(sourceOf(specOf(CollectiveOp::kAllReduce), group, 0, 3), 2);
  group.sick = {1, 2};
  EXPECT_EQ(sourceOf(specOf(CollectiveOp::kAllReduce), group, 0, 3), -1) << "two differ";
  group.sick = {};
  EXPECT_EQ(sourceOf(specOf(CollectiveOp::kAllReduce), group, 0, 3), -1) << "the arithmetic was wrong";
}

TEST(WrongSource, IsTheOwnerOfABlockOnlyWhereItsInputIsWrong) {
  const CollectiveSpec spec = specOf(CollectiveOp::kAllGather);  // element 13 is rank 1's
  FakeGroup group;
  EXPECT_EQ(sourceOf(spec, group, 0), -1) << "it was damaged later";
  group.sick = {2};
  EXPECT_EQ(sourceOf(spec, group, 0), -1) << "another's input is not in it";
  group.sick = {1, 2};
  EXPECT_EQ(sourceOf(spec, group, 0), 1);
}

TEST(WrongSource, IsTheRankThatAloneExpectsSomethingElse) {
  FakeGroup group;
  group.sick = {0, 1, 3};
  EXPECT_EQ(sourceOf(specOf(CollectiveOp::kAllGather), group, 2), 2);
  EXPECT_EQ(sourceOf(specOf(CollectiveOp::kAllReduce), group, 2, 3), 2);
}

TEST(WrongSource, OfABroadcastInPlaceIsNotTheReceiverForInputsThatItOverwrote) {
  FakeGroup group;
  group.sick = {0, 1, 3};
  EXPECT_EQ(sourceOf(specOf(CollectiveOp::kBroadcast, true), group, 2, 3), 0) << "the root";
}

TEST(WrongSource, IsNotLookedForWhereAReductionInPlaceUsedItsInputsUp) {
  FakeGroup group;
  group.isOverwritten = true;
  EXPECT_EQ(sourceOf(specOf(CollectiveOp::kAllReduce, true), group, 0, 3), -1);
  EXPECT_EQ(group.asked, 0);
}

/// Every rank takes part in every question, or the others wait for it.
TEST(WrongSource, IsAskedForByRanksThatFoundNothing) {
  FakeGroup group;
  group.foreign = {1, 3};
  group.sick = {1};
  const auto source = findWrongSource(specOf(CollectiveOp::kAllReduce), exact(), 0, {}, group);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(*source, -1) << "its own result is right";
  EXPECT_EQ(group.asked, 1);
}

TEST(WrongSource, IsNotReadBeyondTheInput) {
  CollectiveSpec spec = specOf(CollectiveOp::kReduceScatter);
  for (const uint64_t index : {uint64_t{40}, uint64_t{1} << 40, ~uint64_t{0}}) {
    FakeGroup group;
    group.foreign = {1, index};
    const auto source = findWrongSource(spec, exact(), 0, {}, group);
    ASSERT_FALSE(source.ok());
    EXPECT_EQ(source.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(group.asked, 0);
  }
}

}  // namespace
}  // namespace muster
