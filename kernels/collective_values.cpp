// SPDX-License-Identifier: Apache-2.0
// Exact inputs and results of collectives.
#include "kernels/collective_values.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

constexpr int64_t kWidest = 1 << 20;  ///< larger integers prove no more
constexpr int kPowersOfTwo = 6;       ///< factors other than +-1 of a product: 2^-6 to 2^6 fits fp8_e4m3
constexpr int64_t kInt8Largest = 127;

/// Integers up to this one are exact in the type: 2 to the digits of its significand.
int64_t largestExact(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
    case Dtype::kF32:
      return kWidest;
    case Dtype::kTf32:  // stored as f32, but 11 digits in hardware
    case Dtype::kF16:
      return 1 << 11;
    case Dtype::kBf16:
      return 1 << 8;
    case Dtype::kI8:
      return kInt8Largest;
    case Dtype::kFp8E4m3:
      return 1 << 4;
    case Dtype::kFp8E5m2:
      return 1 << 3;
    case Dtype::kFp4:
      return 1 << 2;
  }
  return 1;
}

}  // namespace

Origin originOf(const CollectiveSpec& spec, int rank, int ranks, uint64_t element) {
  const auto own = static_cast<uint64_t>(rank) * spec.count;
  const auto block = static_cast<int>(element / spec.count);
  switch (spec.op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kReduce:
      return {-1, element};
    case CollectiveOp::kReduceScatter:
      return {-1, own + element};
    case CollectiveOp::kAllGather:
    case CollectiveOp::kGather:
      return {block, element % spec.count};
    case CollectiveOp::kBroadcast:
      return {spec.root, element};
    case CollectiveOp::kScatter:
      return {spec.root, own + element};
    case CollectiveOp::kAllToAll:
      return {block, own + element % spec.count};
    case CollectiveOp::kSendRecv:
      return {(rank + ranks - 1) % ranks, element};
  }
  return {};
}

bool hasResult(const CollectiveSpec& spec, int rank) {
  const bool rootOnly = spec.op == CollectiveOp::kReduce || spec.op == CollectiveOp::kGather;
  return !rootOnly || rank == spec.root;
}

ExactValues::ExactValues(Dtype dtype, ReduceOp reduce, int ranks, uint64_t seed)
    : reduce_(reduce), ranks_(ranks), key_(scatter(seed)), integers_(dtype == Dtype::kI8) {
  const int64_t largest = largestExact(dtype);
  switch (reduce) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      range_ = std::max<int64_t>(1, largest / ranks);
      contributors_ = static_cast<int>(std::min<int64_t>(ranks, largest));
      return;
    case ReduceOp::kProd:
      contributors_ = std::min(ranks, kPowersOfTwo);
      return;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      range_ = largest;
      contributors_ = ranks;
      return;
  }
}

double ExactValues::input(int rank, uint64_t index) const {
  const uint32_t bits = hash(rank, index);
  if (reduce_ == ReduceOp::kProd) {
    const double sign = (bits & 1u) != 0 ? -1 : 1;
    if (!contributes(rank, index)) return sign;
    const int exponent = static_cast<int>((bits >> 8) % 3) - 1;  // -1, 0, 1
    return sign * std::ldexp(1.0, integers_ ? std::abs(exponent) : exponent);
  }
  if (!contributes(rank, index)) return 0;
  const auto values = static_cast<uint64_t>(2 * range_ + 1);
  return static_cast<double>(static_cast<int64_t>((bits * values) >> 32) - range_);
}

double ExactValues::reduced(uint64_t index) const {
  double result = input(0, index);
  for (int rank = 1; rank < ranks_; ++rank) {
    const double value = input(rank, index);
    switch (reduce_) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        result += value;
        break;
      case ReduceOp::kProd:
        result *= value;
        break;
      case ReduceOp::kMin:
        result = std::min(result, value);
        break;
      case ReduceOp::kMax:
        result = std::max(result, value);
        break;
    }
  }
  return reduce_ == ReduceOp::kAvg ? result / ranks_ : result;
}

}  // namespace muster
