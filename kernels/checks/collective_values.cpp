// SPDX-License-Identifier: Apache-2.0
// Exact inputs and results of collectives.
#include "kernels/checks/collective_values.h"

#include <algorithm>

#include "kernels/interfaces/communicator.h"

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

}  // namespace muster
