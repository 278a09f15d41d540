// SPDX-License-Identifier: Apache-2.0
// Normally distributed numbers as a pure function of seed and index.
#pragma once

#include <cstdint>

#include "kernels/interfaces/device.h"
#include "kernels/spec/narrow_floats.h"
#include "kernels/spec/normal_values.h"

namespace muster::host {

/// IEEE 754's float of 16 bits. GCC 12 knows it in C++ by another name on arm64.
#if defined(__aarch64__)
using Half = __fp16;
#else
using Half = _Float16;
#endif

/// Whether fillNormal knows the type on this backend.
bool canFillNormal(Dtype dtype);

/// Writes elements [first, first + count) of the sequence of `seed` to `data`; `first` is even. The element
/// with index i does not depend on where a range begins. f64, f32, tf32 (stored as f32), f16, bf16, i8.
void fillNormal(void* data, Dtype dtype, uint64_t seed, uint64_t first, uint64_t count);

}  // namespace muster::host
