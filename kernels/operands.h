// SPDX-License-Identifier: Apache-2.0
// What every backend checks before it works on buffers, and the words of its refusals.
#pragma once

#include "kernels/device.h"

namespace muster {

/// What the memory kernels compute with: kWrite writes this value, kTriad is a = b + kTriadScalar * c.
inline constexpr double kWriteValue = 1.25;
inline constexpr double kTriadScalar = 3;

/// kUsage unless both buffers have as many bytes.
Status sameSize(const Buffer& a, const Buffer& b, const std::string& device);

/// kUsage unless the buffers that `op` needs are there, of one size, in whole 64-bit words.
Status checkOperands(MemoryOp op, const Buffer& a, const Buffer* b, const Buffer* c,
                     const std::string& device);

/// "out of memory: wanted 1 PiB, 64 GB is free (reason); make the buffers smaller or free memory". Never
/// kUnsupported, which would be a skip.
Error outOfMemory(const std::string& device, uint64_t wanted, uint64_t free, const std::string& reason);

}  // namespace muster
