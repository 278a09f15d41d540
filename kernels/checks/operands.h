// SPDX-License-Identifier: Apache-2.0
// What every backend checks before it works on buffers, and the words of its refusals.
#pragma once

#include "kernels/interfaces/device.h"

namespace muster {

/// kUsage unless both buffers have as many bytes.
Status sameSize(const Buffer& a, const Buffer& b, const std::string& device);

/// kUsage unless the buffers that `op` needs are there, of one size, in whole 64-bit words.
Status checkOperands(MemoryOp op, const Buffer& a, const Buffer* b, const Buffer* c,
                     const std::string& device);

/// kUsage unless `stride` is a multiple of 8 and the buffer holds at least one line.
Status checkRing(const Buffer& buffer, uint64_t stride, const std::string& device);

/// "out of memory: required 1 PiB, 64 GB is free (reason); make the buffers smaller or free memory". Never
/// kUnsupported, which would be a skip.
Error outOfMemory(const std::string& device, uint64_t wanted, uint64_t free, const std::string& reason);

}  // namespace muster
