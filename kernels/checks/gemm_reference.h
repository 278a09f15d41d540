// SPDX-License-Identifier: Apache-2.0
// What backends share in checking a matrix product: which elements are looked at, what their bytes mean, and
// their values in the widest arithmetic of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/interfaces/ops.h"

namespace muster {

/// What products of this input type are added up in, and what they are stored as. kI8 stands for i32.
Dtype gemmAccumulator(Dtype input);
/// Narrow floats stay 16 bits wide: f16 as f16, bf16, fp8 and fp4 as bf16.
Dtype gemmOutput(Dtype input);
/// Bytes of one element of C.
size_t gemmOutputBytes(Dtype input);
/// Bytes of A, B, C and the kept result.
uint64_t gemmOperandBytes(const GemmSpec& spec);

/// kUsage for a dimension that is out of bounds.
Status checkGemmShape(const GemmSpec& spec);

/// The elements of C to look at, as row-major indices: each where there are no more than `samples`, else that
/// many at random.
std::vector<int64_t> sampledElements(const GemmSpec& spec, int samples, uint64_t seed);

/// Element `index` of an array of inputs, or of results that came from such inputs. fp4: two a byte, the
/// lower half first.
long double gemmInputAt(const std::byte* data, Dtype dtype, int64_t index);
long double gemmOutputAt(const std::byte* data, Dtype input, int64_t index);

/// A row or a column inside a matrix: element i is at first + i * stride.
struct Lane {
  const std::byte* data = nullptr;
  Dtype dtype = Dtype::kF32;
  int64_t first = 0;
  int64_t stride = 1;
};
/// The sum of `k` products in f80: 11 bits more than f64 has, 40 more than f32.
long double dotProduct(const Lane& a, const Lane& b, int64_t k);

}  // namespace muster
