// SPDX-License-Identifier: Apache-2.0
// How much memory this process can still get.
#pragma once

#include <cstdint>

#include "kernels/host/inventory/root.h"
#include "runner/core/result.h"

namespace muster::host {

/// The smallest of what the kernel calls available, what each memory cgroup above this process leaves (v1 and
/// v2: beyond such a limit there is no error, only the OOM killer), and what NUMA node `numaNode` has left
/// (negative: any node).
Result<uint64_t> freeMemory(const Root& root, int numaNode = -1);

}  // namespace muster::host
