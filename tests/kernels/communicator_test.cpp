// SPDX-License-Identifier: Apache-2.0
// Names and bandwidth arithmetic of collectives, against the table of nccl-tests; exact inputs.
#include "kernels/interfaces/communicator.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/checks/collective_values.h"

namespace muster {
namespace {

CollectiveSpec specOf(CollectiveOp op, uint64_t count, Dtype dtype = Dtype::kF32) {
  CollectiveSpec spec;
  spec.op = op;
  spec.count = count;
  spec.dtype = dtype;
  return spec;
}

TEST(Collective, HasTheNamesOfNcclTests) {
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall",
                           "gather", "scatter", "sendrecv"}) {
    const auto op = collectiveOpFromName(name);
    ASSERT_TRUE(op.ok()) << name;
    EXPECT_STREQ(collectiveOpName(*op), name);
  }
  for (const char* name : {"sum", "prod", "min", "max", "avg"})
    EXPECT_STREQ(reduceOpName(*reduceOpFromName(name)), name);
}

TEST(Collective, NamesTheNearestOnATypo) {
  EXPECT_EQ(collectiveOpFromName("allreduce").error().message,
            "unknown collective \"allreduce\", expected one of all_reduce, all_gather, reduce_scatter, "
            "broadcast, reduce, alltoall, gather, scatter, sendrecv; did you mean \"all_reduce\"?");
}

TEST(Collective, CountsBytesAndBusBandwidthAsNcclTestsDo) {
  struct Row {
    CollectiveOp op;
    uint64_t bytes;
    double factor;
  };
  for (const Row& row :
       {Row{CollectiveOp::kAllReduce, 4000, 2 * 7.0 / 8}, Row{CollectiveOp::kAllGather, 32000, 7.0 / 8},
        Row{CollectiveOp::kReduceScatter, 32000, 7.0 / 8}, Row{CollectiveOp::kAllToAll, 32000, 7.0 / 8},
        Row{CollectiveOp::kGather, 32000, 7.0 / 8}, Row{CollectiveOp::kScatter, 32000, 7.0 / 8},
        Row{CollectiveOp::kBroadcast, 4000, 1}, Row{CollectiveOp::kReduce, 4000, 1},
        Row{CollectiveOp::kSendRecv, 4000, 1}}) {
    EXPECT_EQ(specOf(row.op, 1000).bytes(8), row.bytes) << collectiveOpName(row.op);
    EXPECT_DOUBLE_EQ(specOf(row.op, 1000).busFactor(8), row.factor) << collectiveOpName(row.op);
  }
}

TEST(Collective, SaysWhatEachRankSendsAndReceives) {
  EXPECT_EQ(specOf(CollectiveOp::kAllGather, 10).sendCount(4), 10u);
  EXPECT_EQ(specOf(CollectiveOp::kAllGather, 10).receiveCount(4), 40u);
  EXPECT_EQ(specOf(CollectiveOp::kReduceScatter, 10).sendCount(4), 40u);
  EXPECT_EQ(specOf(CollectiveOp::kReduceScatter, 10).receiveCount(4), 10u);
  EXPECT_EQ(specOf(CollectiveOp::kAllToAll, 10).sendCount(4), 40u);
}

/// Inputs, and every partial sum over any of the ranks, must be integers that the type holds.
void expectExactSums(Dtype dtype, int ranks, double largest) {
  const ExactValues values(dtype, ReduceOp::kSum, ranks, 3);
  double most = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    double magnitude = 0, sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const double value = values.input(rank, i);
      EXPECT_EQ(value, std::round(value));
      magnitude += std::abs(value);
      sum += value;
    }
    EXPECT_EQ(values.reduced(i), sum);
    most = std::max(most, magnitude);
  }
  EXPECT_LE(most, largest) << dtypeName(dtype) << " on " << ranks;
  EXPECT_GT(most, 0) << dtypeName(dtype) << " on " << ranks;
}

TEST(ExactValues, SumWithoutRoundingInAnyOrder) {
  for (int ranks : {1, 2, 3, 8, 100, 4096}) {
    expectExactSums(Dtype::kBf16, ranks, 256);
    expectExactSums(Dtype::kF16, ranks, 2048);
    expectExactSums(Dtype::kF32, ranks, 1 << 24);
    expectExactSums(Dtype::kFp8E4m3, ranks, 16);
    expectExactSums(Dtype::kI8, ranks, 127);
  }
}

TEST(ExactValues, MultiplyToPowersOfTwoThatAnyTypeHolds) {
  for (int ranks : {1, 2, 8, 1000}) {
    const ExactValues values(Dtype::kF16, ReduceOp::kProd, ranks, 3);
    for (uint64_t i = 0; i < 200; ++i) {
      int exponent = 0;
      EXPECT_EQ(std::abs(std::frexp(values.reduced(i), &exponent)), 0.5);
      EXPECT_LE(std::abs(exponent - 1), 6);
    }
  }
}

TEST(ExactValues, DifferBySeedRankAndIndex) {
  const ExactValues one(Dtype::kF32, ReduceOp::kMax, 2, 1), two(Dtype::kF32, ReduceOp::kMax, 2, 2);
  int same = 0;
  for (uint64_t i = 0; i < 100; ++i)
    same += (one.input(0, i) == two.input(0, i)) + (one.input(0, i) == one.input(1, i)) +
            (one.input(0, i) == one.input(0, i + 1));
  EXPECT_LT(same, 10);
}

/// A line that is stuck at 0 or 1 shows in 1 KiB, in what is put in and in what comes out.
TEST(ExactValues, ShowAnyStuckBitOfSignAndExponent) {
  const auto bitsOf = [](double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); };
  for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kMax})
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const ExactValues values(Dtype::kF32, reduce, 4, seed);
      uint32_t inputOnes = 0, inputZeros = 0, ones = 0, zeros = 0;
      for (uint64_t i = 0; i < 256; ++i) {
        const uint32_t input = bitsOf(values.input(1, i)), result = bitsOf(values.reduced(i));
        inputOnes |= input;
        inputZeros |= ~input;
        ones |= result;
        zeros |= ~result;
      }
      constexpr uint32_t kSignAndExponent = 0xff800000u;
      EXPECT_EQ(inputOnes & inputZeros & kSignAndExponent, kSignAndExponent) << seed;
      EXPECT_EQ(ones & zeros & kSignAndExponent, kSignAndExponent) << seed;
    }
}

TEST(ExactValues, TellWhereEachElementComesFrom) {
  CollectiveSpec spec = specOf(CollectiveOp::kAllToAll, 10);
  EXPECT_EQ(originOf(spec, 2, 4, 13).rank, 1);
  EXPECT_EQ(originOf(spec, 2, 4, 13).index, 23u);
  EXPECT_EQ(originOf(specOf(CollectiveOp::kSendRecv, 10), 0, 4, 3).rank, 3);
  EXPECT_EQ(originOf(specOf(CollectiveOp::kReduceScatter, 10), 2, 4, 3).rank, -1);
  EXPECT_EQ(originOf(specOf(CollectiveOp::kReduceScatter, 10), 2, 4, 3).index, 23u);
}

}  // namespace
}  // namespace muster
