// SPDX-License-Identifier: Apache-2.0
// The element types that collectives know on the host: how each is stored, and how it becomes a number.
#pragma once

#include <cstdint>

#include "kernels/host/normal.h"
#include "kernels/interfaces/device.h"

namespace muster::host {

// Each names how it is stored, the type that it is calculated in, and the ways there and back.
struct F64 {
  using Stored = double;
  static double load(Stored x) { return x; }
  static Stored store(double x) { return x; }
};
struct F32 {
  using Stored = float;
  static float load(Stored x) { return x; }
  static Stored store(float x) { return x; }
};
struct F16 {
  using Stored = Half;
  static float load(Stored x) { return static_cast<float>(x); }
  static Stored store(float x) { return static_cast<Stored>(x); }
};
struct Bf16 {
  using Stored = uint16_t;
  static float load(Stored x) { return fromBf16(x); }
  static Stored store(float x) { return toBf16(x); }
};
/// Wraps around.
struct I8 {
  using Stored = int8_t;
  static int32_t load(Stored x) { return x; }
  static Stored store(int32_t x) { return static_cast<Stored>(x); }
};

/// Calls `use` with the element type of `dtype`; false where there is none.
template <typename Use>
bool withElement(Dtype dtype, Use use) {
  switch (dtype) {
    case Dtype::kF64:
      use(F64{});
      return true;
    case Dtype::kF32:
    case Dtype::kTf32:
      use(F32{});
      return true;
    case Dtype::kF16:
      use(F16{});
      return true;
    case Dtype::kBf16:
      use(Bf16{});
      return true;
    case Dtype::kI8:
      use(I8{});
      return true;
    default:
      return false;
  }
}

}  // namespace muster::host
