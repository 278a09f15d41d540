// SPDX-License-Identifier: Apache-2.0
// What GPU threads put into collectives and find wrong in their results, on the CPU: every type, operation
// and number of ranks, far indices, NaN, single bits, averages of numbers of ranks that divide nothing.
#include "kernels/cuda/nccl/elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>

#include "kernels/interfaces/communicator.h"

namespace muster::cuda {
namespace {

constexpr uint64_t kSeed = 7;

CollectiveSpec specOf(CollectiveOp op, Dtype dtype, ReduceOp reduce, uint64_t count) {
  CollectiveSpec spec;
  spec.op = op;
  spec.dtype = dtype;
  spec.reduce = reduce;
  spec.count = count;
  return spec;
}

template <typename Element>
class NcclElements : public ::testing::Test {};
using Elements = ::testing::Types<CollectiveF64, CollectiveF32, CollectiveF16, CollectiveBf16, CollectiveE4m3,
                                  CollectiveE5m2, CollectiveI8>;
TYPED_TEST_SUITE(NcclElements, Elements);

template <typename Element>
Dtype dtypeOf() {
  if (std::is_same_v<Element, CollectiveF64>) return Dtype::kF64;
  if (std::is_same_v<Element, CollectiveF32>) return Dtype::kF32;
  if (std::is_same_v<Element, CollectiveF16>) return Dtype::kF16;
  if (std::is_same_v<Element, CollectiveBf16>) return Dtype::kBf16;
  if (std::is_same_v<Element, CollectiveE4m3>) return Dtype::kFp8E4m3;
  if (std::is_same_v<Element, CollectiveE5m2>) return Dtype::kFp8E5m2;
  return Dtype::kI8;
}

/// Adds up as a library does: each step rounds to the type.
template <typename Element>
double stepwise(const ExactValues& values, uint64_t index, double factor) {
  double sum = Element::load(Element::store(values.input(0, index) * factor));
  for (int rank = 1; rank < values.ranks(); ++rank) {
    const double next = Element::load(Element::store(values.input(rank, index) * factor));
    switch (values.reduce()) {
      case ReduceOp::kProd:
        sum *= next;
        break;
      case ReduceOp::kMin:
        sum = std::min(sum, next);
        break;
      case ReduceOp::kMax:
        sum = std::max(sum, next);
        break;
      default:
        sum += next;
    }
    sum = Element::load(Element::store(sum));
  }
  return sum;
}

TYPED_TEST(NcclElements, HoldEveryInputExactly) {
  for (const ReduceOp reduce :
       {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg})
    for (int ranks : {1, 2, 3, 8, 64}) {
      const ExactValues values(dtypeOf<TypeParam>(), reduce, ranks, kSeed);
      for (uint64_t i = 0; i < 200; ++i) {
        const double value = values.input(ranks - 1, i);
        EXPECT_EQ(TypeParam::load(TypeParam::store(value)), value);
      }
    }
}

TYPED_TEST(NcclElements, TakeWhatALibraryAddsUpForRight) {
  for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax})
    for (int ranks : {1, 2, 3, 5, 8, 16}) {
      const ExactValues values(dtypeOf<TypeParam>(), reduce, ranks, kSeed);
      const CollectiveSpec spec = specOf(CollectiveOp::kAllReduce, dtypeOf<TypeParam>(), reduce, 100);
      for (uint64_t i = 0; i < 100; ++i)
        EXPECT_FALSE(
            isWrong<TypeParam>(TypeParam::store(stepwise<TypeParam>(values, i, 1)), spec, values, 0, i))
            << reduceOpName(reduce) << " " << ranks << " " << i;
    }
}

TYPED_TEST(NcclElements, SeeEveryFlippedBitOfASum) {
  const ExactValues values(dtypeOf<TypeParam>(), ReduceOp::kSum, 4, kSeed);
  const CollectiveSpec spec = specOf(CollectiveOp::kAllReduce, dtypeOf<TypeParam>(), ReduceOp::kSum, 64);
  for (uint64_t i = 0; i < 64; ++i) {
    const auto right = TypeParam::store(values.reduced(i));
    for (unsigned bit = 0; bit < 8 * sizeof right; ++bit) {
      const auto flipped = static_cast<typename TypeParam::Stored>(right ^ (uint64_t{1} << bit));
      if (TypeParam::load(flipped) == TypeParam::load(right)) continue;  // -0 is 0
      EXPECT_TRUE(isWrong<TypeParam>(flipped, spec, values, 0, i)) << i << " " << bit;
    }
  }
}

TYPED_TEST(NcclElements, TakeAllOnesForWrong) {
  if (std::is_same_v<TypeParam, CollectiveI8>) return;  // -1: a number like others
  const ExactValues values(dtypeOf<TypeParam>(), ReduceOp::kSum, 2, kSeed);
  const CollectiveSpec spec = specOf(CollectiveOp::kAllReduce, dtypeOf<TypeParam>(), ReduceOp::kSum, 64);
  const auto ones = static_cast<typename TypeParam::Stored>(~uint64_t{0});
  for (uint64_t i = 0; i < 64; ++i) EXPECT_TRUE(isWrong<TypeParam>(ones, spec, values, 0, i));
}

/// As NCCL makes it: inputs times 1/n, each rounded, then added up.
TYPED_TEST(NcclElements, AllowAnAverageItsRoundingAndNotMore) {
  if (std::is_same_v<TypeParam, CollectiveI8>) return;
  for (int ranks : {2, 3, 6, 7, 8}) {
    const ExactValues values(dtypeOf<TypeParam>(), ReduceOp::kAvg, ranks, kSeed);
    const CollectiveSpec spec = specOf(CollectiveOp::kAllReduce, dtypeOf<TypeParam>(), ReduceOp::kAvg, 256);
    const double factor = TypeParam::load(TypeParam::store(1.0 / ranks));
    for (uint64_t i = 0; i < 256; ++i) {
      const double average = stepwise<TypeParam>(values, i, factor);
      const double unit = std::max(TypeParam::kUnit * values.meanMagnitude(i), 0x1p-9);
      if (TypeParam::kUnit < 0x1p-4) {  // fp8 falls below its smallest numbers here
        EXPECT_FALSE(isWrong<TypeParam>(TypeParam::store(average), spec, values, 0, i)) << ranks << " " << i;
      }
      EXPECT_TRUE(
          isWrong<TypeParam>(TypeParam::store(average + 8 * (ranks + 1) * unit + 1), spec, values, 0, i));
    }
  }
}

TYPED_TEST(NcclElements, KnowWhereEachElementComesFrom) {
  const int ranks = 3;
  for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kAllToAll, CollectiveOp::kGather,
                                CollectiveOp::kScatter, CollectiveOp::kSendRecv, CollectiveOp::kBroadcast}) {
    const CollectiveSpec spec = specOf(op, dtypeOf<TypeParam>(), ReduceOp::kSum, 5);
    const ExactValues values(dtypeOf<TypeParam>(), ReduceOp::kMax, ranks, kSeed);
    for (uint64_t i = 0; i < spec.receiveCount(ranks); ++i) {
      const Origin origin = originOf(spec, 1, ranks, i);
      const double right = values.input(origin.rank, origin.index);
      EXPECT_FALSE(isWrong<TypeParam>(TypeParam::store(right), spec, values, 1, i));
      EXPECT_TRUE(isWrong<TypeParam>(TypeParam::store(right == 1 ? 2 : 1), spec, values, 1, i));
    }
  }
}

TYPED_TEST(NcclElements, WorkBeyondFourGigaElements) {
  const uint64_t count = (uint64_t{1} << 33) + 1;
  const ExactValues values(dtypeOf<TypeParam>(), ReduceOp::kMax, 2, kSeed);
  const CollectiveSpec spec = specOf(CollectiveOp::kAllGather, dtypeOf<TypeParam>(), ReduceOp::kSum, count);
  for (uint64_t i : {count - 1, count, 2 * count - 1}) {
    const Origin origin = originOf(spec, 0, 2, i);
    EXPECT_EQ(origin.rank, i < count ? 0 : 1);
    EXPECT_FALSE(
        isWrong<TypeParam>(TypeParam::store(values.input(origin.rank, origin.index)), spec, values, 0, i));
  }
}

}  // namespace
}  // namespace muster::cuda
