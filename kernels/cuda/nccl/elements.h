// SPDX-License-Identifier: Apache-2.0
// What one thread does to one element of a collective: fill it, or say whether it is wrong. Plain functions,
// so that tests run them on the CPU.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/checks/collective_values.h"
#include "kernels/cuda/host_device.h"
#include "kernels/spec/narrow_floats.h"

namespace muster::cuda {

// Each names how an element is stored, its unit round-off, and the ways to a number and back.
struct CollectiveF64 {
  using Stored = uint64_t;
  static constexpr double kUnit = 0x1p-53;
  MUSTER_HD static double load(Stored x) { return std::bit_cast<double>(x); }
  MUSTER_HD static Stored store(double x) { return std::bit_cast<uint64_t>(x); }
};
struct CollectiveF32 {
  using Stored = uint32_t;
  static constexpr double kUnit = 0x1p-24;
  MUSTER_HD static double load(Stored x) { return std::bit_cast<float>(x); }
  MUSTER_HD static Stored store(double x) { return std::bit_cast<uint32_t>(static_cast<float>(x)); }
};
struct CollectiveF16 {
  using Stored = uint16_t;
  static constexpr double kUnit = 0x1p-11;
  MUSTER_HD static double load(Stored x) {
    constexpr FloatFormat kFormat = kF16Format;
    return decodeFloat(x, kFormat);
  }
  MUSTER_HD static Stored store(double x) {
    constexpr FloatFormat kFormat = kF16Format;
    return static_cast<Stored>(encodeFloat(static_cast<float>(x), kFormat));
  }
};
struct CollectiveBf16 {
  using Stored = uint16_t;
  static constexpr double kUnit = 0x1p-8;
  MUSTER_HD static double load(Stored x) { return fromBf16(x); }
  MUSTER_HD static Stored store(double x) { return toBf16(static_cast<float>(x)); }
};
struct CollectiveE4m3 {
  using Stored = uint8_t;
  static constexpr double kUnit = 0x1p-4;
  MUSTER_HD static double load(Stored x) {
    constexpr FloatFormat kFormat = kE4m3Format;
    return decodeFloat(x, kFormat);
  }
  MUSTER_HD static Stored store(double x) {
    constexpr FloatFormat kFormat = kE4m3Format;
    return static_cast<Stored>(encodeFloat(static_cast<float>(x), kFormat));
  }
};
struct CollectiveE5m2 {
  using Stored = uint8_t;
  static constexpr double kUnit = 0x1p-3;
  MUSTER_HD static double load(Stored x) {
    constexpr FloatFormat kFormat = kE5m2Format;
    return decodeFloat(x, kFormat);
  }
  MUSTER_HD static Stored store(double x) {
    constexpr FloatFormat kFormat = kE5m2Format;
    return static_cast<Stored>(encodeFloat(static_cast<float>(x), kFormat));
  }
};
/// Wraps around; an average is cut off towards zero.
struct CollectiveI8 {
  using Stored = uint8_t;
  static constexpr double kUnit = 0;
  MUSTER_HD static double load(Stored x) { return static_cast<int8_t>(x); }
  MUSTER_HD static Stored store(double x) { return static_cast<Stored>(static_cast<int32_t>(x)); }
};

/// Calls `use` with the element type of `dtype`; false where collectives have none.
template <typename Use>
bool withCollectiveElement(Dtype dtype, Use use) {
  switch (dtype) {
    case Dtype::kF64:
      return use(CollectiveF64{}), true;
    case Dtype::kF32:
    case Dtype::kTf32:
      return use(CollectiveF32{}), true;
    case Dtype::kF16:
      return use(CollectiveF16{}), true;
    case Dtype::kBf16:
      return use(CollectiveBf16{}), true;
    case Dtype::kFp8E4m3:
      return use(CollectiveE4m3{}), true;
    case Dtype::kFp8E5m2:
      return use(CollectiveE5m2{}), true;
    case Dtype::kI8:
      return use(CollectiveI8{}), true;
    case Dtype::kFp4:
      return false;
  }
  return false;
}

/// How far an average may be from its exact value. NCCL multiplies each input by 1/n before it adds: exact
/// where n is a power of two; else each of the n products, n-1 sums and 1/n itself round, by a unit of the
/// mean magnitude at most.
template <typename Element>
MUSTER_HD double averageTolerance(const ExactValues& values, uint64_t index) {
  const int ranks = values.ranks();
  if (values.reduce() != ReduceOp::kAvg || (ranks & (ranks - 1)) == 0 || Element::kUnit == 0) return 0;
  return (ranks + 1) * Element::kUnit * values.meanMagnitude(index) * 1.01;
}

/// Whether element `element` of what `rank` received is not what it must be. NaN always is.
template <typename Element>
MUSTER_HD bool isWrong(typename Element::Stored got, const CollectiveSpec& spec, const ExactValues& values,
                       int rank, uint64_t element) {
  const Origin origin = originOf(spec, rank, values.ranks(), element);
  const bool reduced = origin.rank < 0;
  const double want = reduced ? values.reduced(origin.index) : values.input(origin.rank, origin.index);
  const double number = Element::load(got);
  if (number == Element::load(Element::store(want))) return false;
  const double tolerance = reduced ? averageTolerance<Element>(values, origin.index) : 0;
  const double error = number < want ? want - number : number - want;
  return !(tolerance > 0 && error <= tolerance);
}

}  // namespace muster::cuda
