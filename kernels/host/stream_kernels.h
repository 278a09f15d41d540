// SPDX-License-Identifier: Apache-2.0
// The memory kernels of one thread: read, write, copy and triad over 64-bit words.
#pragma once

#include <cstddef>

#include "kernels/spec/memory_values.h"

namespace muster::host {

/// One instruction set's kernels. Pointers are aligned to a page, `n` counts 64-bit words and may be any
/// number. Stores bypass the caches where the instruction set can: a plain store reads the line first, which
/// costs a third of a copy's bandwidth, and buffers are larger than any cache anyway.
struct StreamKernels {
  const char* name;
  double (*read)(const double* a, size_t n);  ///< the sum, so that no load can be left out
  void (*write)(double* a, size_t n);
  void (*copy)(double* a, const double* b, size_t n);
  void (*triad)(double* a, const double* b, const double* c, size_t n);  ///< a = b + kTriadScalar * c
};

/// The kernels for this processor: AVX2 where it is there (the wider AVX-512 is no faster: memory is the
/// limit).
const StreamKernels& streamKernels();
/// The portable ones, for comparison.
const StreamKernels& plainKernels();

}  // namespace muster::host
