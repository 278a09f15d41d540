// SPDX-License-Identifier: Apache-2.0
// Mathematical operations of a device. Plugins hold the method, backends the kernels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/interfaces/device.h"

namespace muster {

/// C[m,n] = A[m,k] x B[k,n], row-major, accumulated as the dtype's hardware does (f32 for 8- and 16-bit
/// floats, i32 for i8).
struct GemmSpec {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Dtype dtype = Dtype::kF32;
  std::string algorithm =
      "default";  ///< a backend's name of an implementation ("onednn", "openblas"); "default": its choice

  /// Floating point (or integer) operations of one run: 2 m n k.
  [[nodiscard]] double flops() const;
};

/// Largest deviation of a result from a high-precision reference.
struct ReferenceError {
  uint64_t checked = 0;  ///< elements compared
  uint64_t wrong = 0;    ///< elements beyond `bound`, NaN included
  double worst = 0;      ///< largest |error| / (bound's scale)
  double bound = 0;      ///< allowed |error| as a share of sqrt(k), from the dtype's unit round-off
  int64_t row = -1;      ///< of the worst element
  int64_t column = -1;
};

/// A prepared matrix multiplication with its operands on the device.
class Gemm {
 public:
  virtual ~Gemm() = default;
  /// Fills A and B with fixed-seed normal values.
  virtual Status prepare(uint64_t seed) = 0;
  /// Queues one multiplication.
  virtual Status run() = 0;
  /// Recomputes `samples` elements of the last result in higher precision (f64, f80 for f64) and compares.
  virtual Result<ReferenceError> checkAgainstReference(int samples, uint64_t seed) = 0;
  /// Keeps the last result as the one that later results are compared with, bit by bit.
  virtual Status keepResult() = 0;
  /// Queues a comparison of the last result with the kept one, and adds what it finds to `found`, a tally of
  /// the device. That result may be used up: each comparison needs a run of its own.
  virtual Status compareWithKept(Tally& found) = 0;
  /// The implementation in use, "onednn 2.6.3 avx512_core_bf16".
  [[nodiscard]] virtual std::string implementation() const = 0;
};

/// The operations of one open device; owns nothing of the device, must not outlive it.
class Ops {
 public:
  virtual ~Ops() = default;
  /// Dtypes in which this device multiplies matrices in hardware or its library.
  [[nodiscard]] virtual std::vector<Dtype> gemmDtypes() const = 0;
  /// Implementations for a dtype, the default one first.
  [[nodiscard]] virtual std::vector<std::string> gemmAlgorithms(Dtype dtype) const = 0;
  /// kUnsupported names the dtype or library that is missing.
  virtual Result<std::unique_ptr<Gemm>> gemm(const GemmSpec& spec) = 0;
};

}  // namespace muster
