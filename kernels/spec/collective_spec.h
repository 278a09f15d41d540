// SPDX-License-Identifier: Apache-2.0
// Which collective to run: plain data, for code that a GPU compiler reads too.
#pragma once

#include <cstdint>

#include "kernels/spec/dtype.h"

namespace muster {

enum class ReduceOp { kSum, kProd, kMin, kMax, kAvg };

enum class CollectiveOp {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kSendRecv,  ///< each rank sends to the next and receives from the one before
};

/// One collective of one size. `count` is what nccl-tests calls so: elements of the whole buffer for
/// all_reduce, broadcast, reduce and sendrecv, and elements per rank for the others.
struct CollectiveSpec {
  CollectiveOp op = CollectiveOp::kAllReduce;
  Dtype dtype = Dtype::kF32;
  ReduceOp reduce = ReduceOp::kSum;
  uint64_t count = 0;
  int root = 0;
  bool inPlace = false;

  [[nodiscard]] uint64_t bytes(int ranks) const;         ///< S of nccl-tests: what algbw divides by time
  [[nodiscard]] double busFactor(int ranks) const;       ///< busbw = algbw x this
  [[nodiscard]] uint64_t sendCount(int ranks) const;     ///< elements of a rank's input
  [[nodiscard]] uint64_t receiveCount(int ranks) const;  ///< elements of a rank's output
};

}  // namespace muster
