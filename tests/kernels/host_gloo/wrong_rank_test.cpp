// SPDX-License-Identifier: Apache-2.0
// A wrong element that was planted in one rank's memory is found, and that rank is named.
#include <gtest/gtest.h>

#include "tests/kernels/host_gloo/ranks.h"
#include "tests/kernels/host_gloo/transparent_device.h"

namespace muster::testing {
namespace {

constexpr int kRanks = 3;
constexpr int kSick = 1;
constexpr uint64_t kElement = 5;
constexpr uint64_t kCount = 37;

/// Runs `spec` on kRanks ranks, element kElement of rank kSick's input being wrong; what each rank found, as
/// "wrong elements @ first one, source".
std::vector<std::string> runWithAWrongElement(const CollectiveSpec& spec) {
  return runRanks(kRanks, [&](Rank& rank) -> std::string {
    auto owned = std::make_unique<TransparentDevice>(std::move(rank.device));
    TransparentDevice& device = *owned;
    rank.device = std::move(owned);
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    auto work = (*group)->collective(spec);
    if (!work.ok()) return work.error().text();
    auto status = (*work)->prepare(1);
    // In place there is one buffer, else the input comes last.
    if (rank.spec.rank == kSick) reinterpret_cast<float*>(device.allocated.back())[kElement] += 1;
    if (status.ok()) status = (*work)->run();
    if (!status.ok()) return status.error().text();
    auto found = (*work)->check();
    if (!found.ok()) return found.error().text();
    return std::to_string(found->wrong) + " @ " + std::to_string(found->firstElement) + ", " +
           std::to_string(found->source);
  });
}

CollectiveSpec specOf(CollectiveOp op, bool inPlace = false) {
  CollectiveSpec spec;
  spec.op = op;
  spec.count = kCount;
  spec.root = 2;
  spec.inPlace = inPlace;
  return spec;
}

const std::string kWell = "0 @ 0, -1";
const std::string kFound = "1 @ 5, 1";
using Words = std::vector<std::string>;

TEST(WrongRank, IsNamedByEveryRankAfterAReduction) {
  EXPECT_EQ(runWithAWrongElement(specOf(CollectiveOp::kAllReduce)), (Words{kFound, kFound, kFound}));
}

TEST(WrongRank, IsNamedByTheRootOfAReduce) {
  EXPECT_EQ(runWithAWrongElement(specOf(CollectiveOp::kReduce)), (Words{kWell, kWell, kFound}));
}

TEST(WrongRank, IsNamedByTheRankThatGotItsShareOfAReduceScatter) {
  EXPECT_EQ(runWithAWrongElement(specOf(CollectiveOp::kReduceScatter)), (Words{kFound, kWell, kWell}));
}

TEST(WrongRank, IsNamedByItsBlockOfAnAllGather) {
  const std::string found = "1 @ 42, 1";  // rank 1's block begins at 37
  EXPECT_EQ(runWithAWrongElement(specOf(CollectiveOp::kAllGather)), (Words{found, found, found}));
}

TEST(WrongRank, IsTheSenderOfASendRecv) {
  EXPECT_EQ(runWithAWrongElement(specOf(CollectiveOp::kSendRecv)), (Words{kWell, kWell, kFound}));
}

TEST(WrongRank, CannotBeNamedInPlaceWhereInputsAreUsedUp) {
  const std::string unknown = "1 @ 5, -1";
  EXPECT_EQ(runWithAWrongElement(specOf(CollectiveOp::kAllReduce, true)), (Words{unknown, unknown, unknown}));
}

TEST(WrongRank, IsTheOneWhoseWholeInputDiffers) {
  const auto words = runRanks(kRanks, [](Rank& rank) -> std::string {
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    auto work = (*group)->collective(specOf(CollectiveOp::kAllReduce));
    if (!work.ok()) return work.error().text();
    auto status = (*work)->prepare(rank.spec.rank == kSick ? 7 : 1);
    if (status.ok()) status = (*work)->run();
    auto found = (*work)->check();
    return found.ok() && found->wrong > 0 ? std::to_string(found->source) : problemOf(found) + " nothing";
  });
  EXPECT_EQ(words, (Words{"1", "1", "1"}));
}

TEST(WrongRank, IsFoundWhereNobodyWroteTheResult) {
  const auto words = runRanks(1, [](Rank& rank) -> std::string {
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    auto work = (*group)->collective(specOf(CollectiveOp::kAllGather));
    if (!work.ok()) return work.error().text();
    if (auto status = (*work)->prepare(1); !status.ok()) return status.error().text();
    auto found = (*work)->check();
    return found.ok() ? std::to_string(found->wrong) : found.error().text();
  });
  EXPECT_EQ(words, (Words{"37"}));
}

}  // namespace
}  // namespace muster::testing
