// SPDX-License-Identifier: Apache-2.0
// Element-wise reductions of the host, one function per type and operation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/interfaces/communicator.h"

namespace muster::host {

/// c[i] = a[i] op b[i] for n elements; c may be a or b. 16-bit floats are calculated in f32 and rounded after
/// each step.
using Reduction = void (*)(void* c, const void* a, const void* b, size_t n);

/// kAvg reduces as kSum: divideByRanks() does the rest. kUnsupported for a type that the host does not
/// reduce.
Result<Reduction> reductionFor(Dtype dtype, ReduceOp op);

/// Divides each element by the number of ranks, rounded once (i8: towards zero).
void divideByRanks(void* data, Dtype dtype, uint64_t count, int ranks);

}  // namespace muster::host
