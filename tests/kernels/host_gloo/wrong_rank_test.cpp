// SPDX-License-Identifier: Apache-2.0
// A wrong element that was planted in one rank's memory is found, and that rank is named; no other.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/checks/collective_values.h"
#include "tests/kernels/host_gloo/ranks.h"
#include "tests/kernels/host_gloo/transparent_device.h"

namespace muster::testing {
namespace {

constexpr int kRanks = 3;
constexpr int kSick = 1;
constexpr uint64_t kElement = 5;
constexpr uint64_t kCount = 37;

/// Where the wrong element is planted.
enum class Place { kInput, kResult };

/// Element kElement of what a rank puts in or got out.
float& elementOf(const TransparentDevice& device, const CollectiveSpec& spec, int rank, Place place) {
  // In place there is one buffer, in which a rank's block lies at its own place; else the input comes last.
  const uint64_t count = place == Place::kInput ? spec.receiveCount(kRanks) : spec.sendCount(kRanks);
  const bool block = spec.inPlace && count > spec.count;
  std::byte* base = place == Place::kInput ? device.allocated.back() : device.allocated.front();
  return reinterpret_cast<float*>(base)[kElement + (block ? static_cast<uint64_t>(rank) * spec.count : 0)];
}

/// Runs `spec` on kRanks ranks, element kElement of rank `sick` being wrong; what each rank found, as "wrong
/// elements @ first one, source".
std::vector<std::string> runWithAWrongElement(const CollectiveSpec& spec, int sick = kSick,
                                              Place place = Place::kInput) {
  return runRanks(kRanks, [&](Rank& rank) -> std::string {
    auto owned = std::make_unique<TransparentDevice>(std::move(rank.device));
    TransparentDevice& device = *owned;
    rank.device = std::move(owned);
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    auto work = (*group)->collective(spec);
    if (!work.ok()) return work.error().text();
    auto status = (*work)->prepare(1);
    const bool isSick = rank.spec.rank == sick;
    if (isSick && place == Place::kInput) elementOf(device, spec, sick, place) += 1;
    if (status.ok()) status = (*work)->run();
    if (status.ok()) status = (*group)->synchronize();
    if (!status.ok()) return status.error().text();
    if (isSick && place == Place::kResult) elementOf(device, spec, sick, place) += 1;
    auto found = (*work)->check();
    if (!found.ok()) return found.error().text();
    return std::to_string(found->wrong) + " @ " + std::to_string(found->firstElement) + ", " +
           std::to_string(found->source) + (found->inputRight ? ", input right" : "");
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

/// All that only moves data.
const std::vector<CollectiveOp> kMoves = {CollectiveOp::kAllGather, CollectiveOp::kBroadcast,
                                          CollectiveOp::kAllToAll,  CollectiveOp::kGather,
                                          CollectiveOp::kScatter,   CollectiveOp::kSendRecv};

std::vector<CollectiveSpec> moves() {
  std::vector<CollectiveSpec> specs;
  for (const CollectiveOp op : kMoves) {
    specs.push_back(specOf(op));
    if (worksInPlace(op)) specs.push_back(specOf(op, true));
  }
  return specs;
}

TEST(WrongRank, IsTheOneThatPutInWhatMoved) {
  for (const CollectiveSpec& spec : moves()) {
    const bool rootSends = spec.op == CollectiveOp::kBroadcast || spec.op == CollectiveOp::kScatter;
    const int sick = rootSends ? spec.root : kSick;
    const Words words = runWithAWrongElement(spec, sick);
    const std::string named = "1 @ [0-9]+, " + std::to_string(sick) + "$";
    EXPECT_THAT(words, ::testing::Each(::testing::AnyOf(kWell, ::testing::ContainsRegex(named))))
        << collectiveOpName(spec.op) << (spec.inPlace ? " in place" : "");
    EXPECT_THAT(words, ::testing::Contains(::testing::ContainsRegex(named)))
        << collectiveOpName(spec.op) << (spec.inPlace ? " in place" : "");
  }
}

/// Where a rank gets data of several others, and none passes them on, it is either end: the sender is named,
/// with what speaks for it.
TEST(WrongRank, IsNotTheOneThatPutInWhatTheReceiverDamaged) {
  const std::set<CollectiveOp> direct = {CollectiveOp::kAllToAll, CollectiveOp::kGather};
  for (const CollectiveSpec& spec : moves()) {
    const int receiver = spec.op == CollectiveOp::kGather ? spec.root : kSick;
    const int owner = originOf(spec, receiver, kRanks, kElement).rank;
    Words expected(kRanks, kWell);
    expected[receiver] = fmt::format("1 @ 5, {}, input right", direct.contains(spec.op) ? owner : -1);
    EXPECT_EQ(runWithAWrongElement(spec, receiver, Place::kResult), expected)
        << collectiveOpName(spec.op) << (spec.inPlace ? " in place" : "");
  }
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
