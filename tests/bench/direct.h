// SPDX-License-Identifier: Apache-2.0
// What Muster's figures are held against: the libraries called directly in a loop, and STREAM's copy loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/interfaces/device.h"

namespace muster::bench {

/// A loop body with the name of what it calls.
struct Direct {
  std::string name;
  std::function<void()> once;
  double work = 0;  ///< FLOP or bytes of one call
};

/// C = A x B of size n by a plain call of the library, as its manual shows it. nullptr where it lacks the
/// type.
std::unique_ptr<Direct> directOnednn(Dtype dtype, int64_t n);
std::unique_ptr<Direct> directOpenblas(Dtype dtype, int64_t n);

/// a[i] = b[i] over `bytes` with OpenMP, compiled as plainly as everything else.
std::unique_ptr<Direct> streamCopy(uint64_t bytes);

}  // namespace muster::bench
