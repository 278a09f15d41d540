// SPDX-License-Identifier: Apache-2.0
// What the ranks of a collective put in and must get out: values whose results are exact in their type.
#pragma once

#include <cstdint>

#include "kernels/spec/collective_spec.h"
#include "kernels/spec/pattern.h"

namespace muster {

/// Where an element of a result comes from. For reductions `rank` is -1: from all.
struct Origin {
  int rank = -1;
  uint64_t index = 0;  ///< element of that rank's input
};
/// Origin of element `element` of what `rank` receives.
constexpr Origin originOf(const CollectiveSpec& spec, int rank, int ranks, uint64_t element) {
  const uint64_t own = static_cast<uint64_t>(rank) * spec.count;
  switch (spec.op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kReduce:
      return {-1, element};
    case CollectiveOp::kReduceScatter:
      return {-1, own + element};
    case CollectiveOp::kAllGather:
    case CollectiveOp::kGather:
      return {static_cast<int>(element / spec.count), element % spec.count};
    case CollectiveOp::kBroadcast:
      return {spec.root, element};
    case CollectiveOp::kScatter:
      return {spec.root, own + element};
    case CollectiveOp::kAllToAll:
      return {static_cast<int>(element / spec.count), own + element % spec.count};
    case CollectiveOp::kSendRecv:
      return {(rank + ranks - 1) % ranks, element};
  }
  return {};
}
/// Whether `rank` receives anything (only the root does of a reduce and a gather).
constexpr bool hasResult(const CollectiveSpec& spec, int rank) {
  const bool rootOnly = spec.op == CollectiveOp::kReduce || spec.op == CollectiveOp::kGather;
  return !rootOnly || rank == spec.root;
}

/// The inputs of one collective, a pure function of seed, rank and index, and their reductions. Sums of
/// small integers and products of powers of two fit the significand whatever the order, so that a result
/// that differs at all is wrong. i8 wraps around.
class ExactValues {
 public:
  ExactValues(Dtype dtype, ReduceOp reduce, int ranks, uint64_t seed);

  [[nodiscard]] constexpr double input(int rank, uint64_t index) const {
    const uint32_t bits = hash(rank, index);
    if (reduce_ == ReduceOp::kProd) {
      const double sign = (bits & 1u) != 0 ? -1 : 1;
      const uint32_t power = (bits >> 8) % 3;  // 1/2, 1, 2
      if (!contributes(rank, index) || power == 1) return sign;
      return sign * (power == 0 && !integers_ ? 0.5 : 2);
    }
    if (!contributes(rank, index)) return 0;
    const int64_t range = isSmall(index) ? 1 : range_;
    const auto values = static_cast<uint64_t>(2 * range + 1);
    return static_cast<double>(static_cast<int64_t>((bits * values) >> 32) - range);
  }
  /// The reduction over all ranks. kAvg: the exact sum divided once in double precision; the type's own
  /// rounding (i8: towards zero) is left to the caller.
  [[nodiscard]] constexpr double reduced(uint64_t index) const {
    double result = input(0, index);
    for (int rank = 1; rank < ranks_; ++rank) result = combine(result, input(rank, index));
    return reduce_ == ReduceOp::kAvg ? result / ranks_ : result;
  }
  /// The mean of the inputs' magnitudes: what the errors of an average that is not rounded once grow with.
  [[nodiscard]] constexpr double meanMagnitude(uint64_t index) const {
    double sum = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const double value = input(rank, index);
      sum += value < 0 ? -value : value;
    }
    return sum / ranks_;
  }
  [[nodiscard]] constexpr ReduceOp reduce() const { return reduce_; }
  [[nodiscard]] constexpr int ranks() const { return ranks_; }

 private:
  /// At some places all ranks put in -1 to 1: of larger values the highest bit of the exponent is always 1,
  /// and nobody would see that it is stuck there.
  [[nodiscard]] constexpr bool isSmall(uint64_t index) const {
    return (static_cast<uint32_t>(index ^ key_) * 0x9e3779b1u) >> 28 == 0;
  }
  [[nodiscard]] constexpr double combine(double a, double b) const {
    switch (reduce_) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        return a + b;
      case ReduceOp::kProd:
        return a * b;
      case ReduceOp::kMin:
        return b < a ? b : a;
      case ReduceOp::kMax:
        return a < b ? b : a;
    }
    return a;
  }
  [[nodiscard]] constexpr uint32_t hash(int rank, uint64_t index) const {
    return static_cast<uint32_t>(scatter(key_ ^ (static_cast<uint64_t>(rank) << 44) ^ index) >> 32);
  }
  /// In a group too large for all ranks to contribute, those that do so at this index.
  [[nodiscard]] constexpr bool contributes(int rank, uint64_t index) const {
    return ranks_ <= contributors_ || (static_cast<uint64_t>(rank) + index) % static_cast<uint64_t>(ranks_) <
                                          static_cast<uint64_t>(contributors_);
  }

  ReduceOp reduce_;
  int ranks_;
  uint64_t key_;
  int64_t range_ = 0;      ///< integers lie in -range_..range_
  int contributors_ = 0;   ///< ranks that put in more than the identity
  bool integers_ = false;  ///< the dtype has no fractions
};

}  // namespace muster
