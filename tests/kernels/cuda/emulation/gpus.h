// SPDX-License-Identifier: Apache-2.0
// The emulated GPUs: how many, where, how much memory.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/interfaces/device.h"

namespace muster::emulation {

inline constexpr int kGpus = 2;
inline constexpr int kMultiprocessors = 1;  ///< few, so that grids go round
inline constexpr int kComputeCapability = 90;
inline constexpr uint64_t kMemoryBytes = uint64_t{2} << 30;  ///< of all GPUs together

DeviceInfo gpuInfo(int index);

}  // namespace muster::emulation
