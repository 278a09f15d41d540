// SPDX-License-Identifier: Apache-2.0
// Every collective in every type, at odd sizes, in groups of 1 to 8 real processes: exact, or the wrong rank
// is named.
#include <gtest/gtest.h>

#include "tests/kernels/host_gloo/ranks.h"
#include "tests/kernels/host_gloo/transparent_device.h"

namespace muster::testing {
namespace {

constexpr CollectiveOp kOps[] = {
    CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
    CollectiveOp::kBroadcast, CollectiveOp::kReduce,    CollectiveOp::kAllToAll,
    CollectiveOp::kGather,    CollectiveOp::kScatter,   CollectiveOp::kSendRecv};
constexpr Dtype kDtypes[] = {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16, Dtype::kI8};
constexpr ReduceOp kReductions[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                                    ReduceOp::kAvg};
constexpr uint64_t kCounts[] = {7, 1021,
                                65537};  ///< the last only in all_reduce, to cross a ring in every type

std::string describe(const CollectiveSpec& spec) {
  return std::string(collectiveOpName(spec.op)) + " " + dtypeName(spec.dtype) + " " +
         reduceOpName(spec.reduce) + " of " + std::to_string(spec.count) + (spec.inPlace ? " in place" : "") +
         ", root " + std::to_string(spec.root);
}

/// Runs one collective and checks it; empty when it was exact.
std::string runExactly(Communicator& group, const CollectiveSpec& spec, uint64_t seed) {
  auto work = group.collective(spec);
  if (!work.ok()) return describe(spec) + ": " + work.error().text();
  for (const auto& status : {(*work)->prepare(seed), (*work)->run(), group.synchronize()})
    if (!status.ok()) return describe(spec) + ": " + status.error().text();
  auto found = (*work)->check();
  if (!found.ok()) return describe(spec) + ": " + found.error().text();
  if (found->wrong == 0) return "";
  return describe(spec) + ": " + std::to_string(found->wrong) + " wrong, the first " +
         std::to_string(found->firstElement);
}

/// All types, sizes, reductions and roots of one collective.
std::string sweep(Communicator& group, CollectiveOp op, bool inPlace) {
  CollectiveSpec spec;
  spec.op = op;
  spec.inPlace = inPlace;
  uint64_t seed = 1;
  for (Dtype dtype : kDtypes) {
    for (uint64_t count : kCounts) {
      if (count > 1021 && op != CollectiveOp::kAllReduce) continue;
      for (ReduceOp reduction : kReductions) {
        spec.dtype = dtype;
        spec.count = count;
        spec.reduce = reduction;
        spec.root = hasRoot(op) ? static_cast<int>(count) % group.size() : 0;
        const std::string problem = runExactly(group, spec, ++seed);
        if (!problem.empty()) return problem;
        if (!reduces(op) || count != kCounts[0]) break;  // the others are sums
      }
    }
  }
  return "";
}

class Collectives : public ::testing::TestWithParam<int> {};

TEST_P(Collectives, AreExactInEveryTypeAtOddSizes) {
  const auto words = runRanks(GetParam(), [](Rank& rank) -> std::string {
    rank.device = std::make_unique<SmallPageDevice>(std::move(rank.device));
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    for (CollectiveOp op : kOps) {
      for (bool inPlace : {false, true}) {
        if (inPlace && !worksInPlace(op)) continue;
        const std::string problem = sweep(**group, op, inPlace);
        if (!problem.empty()) return problem;
      }
    }
    return problemOf((*group)->barrier());
  });
  for (const std::string& said : words) EXPECT_EQ(said, "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Range(1, 9));

}  // namespace
}  // namespace muster::testing
