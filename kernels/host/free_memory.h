// SPDX-License-Identifier: Apache-2.0
// How much memory this process can still get.
#pragma once

#include <cstdint>

#include "kernels/host/inventory/root.h"
#include "runner/core/result.h"

namespace muster::host {

/// The smallest of what the kernel calls available and what each memory cgroup above this process leaves (v1
/// and v2): beyond a cgroup's limit there is no error, only the OOM killer.
Result<uint64_t> freeMemory(const Root& root);

}  // namespace muster::host
