// SPDX-License-Identifier: Apache-2.0
// What the ranks of a collective put in and must get out: values whose results are exact in their type.
#pragma once

#include <cstdint>

#include "kernels/communicator.h"
#include "kernels/pattern.h"

namespace muster {

/// Where an element of a result comes from. For reductions `rank` is -1: from all.
struct Origin {
  int rank = -1;
  uint64_t index = 0;  ///< element of that rank's input
};
/// Origin of element `element` of what `rank` receives.
Origin originOf(const CollectiveSpec& spec, int rank, int ranks, uint64_t element);
/// Whether `rank` receives anything (only the root does of a reduce and a gather).
bool hasResult(const CollectiveSpec& spec, int rank);

/// The inputs of one collective, a pure function of seed, rank and index, and their reductions. Sums of
/// small integers and products of powers of two fit the significand whatever the order, so that a result
/// that differs at all is wrong. i8 wraps around.
class ExactValues {
 public:
  ExactValues(Dtype dtype, ReduceOp reduce, int ranks, uint64_t seed);

  [[nodiscard]] double input(int rank, uint64_t index) const;
  /// The reduction over all ranks. kAvg: the exact sum divided once in double precision; the type's own
  /// rounding (i8: towards zero) is left to the caller.
  [[nodiscard]] double reduced(uint64_t index) const;

 private:
  [[nodiscard]] uint32_t hash(int rank, uint64_t index) const {
    return static_cast<uint32_t>(scatter(key_ ^ (static_cast<uint64_t>(rank) << 44) ^ index) >> 32);
  }
  /// In a group too large for all ranks to contribute, those that do so at this index.
  [[nodiscard]] bool contributes(int rank, uint64_t index) const {
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
