// SPDX-License-Identifier: Apache-2.0
// Which processors the work of one device runs on.
#pragma once

#include <vector>

#include "kernels/interfaces/device.h"
#include "runner/core/result.h"

namespace muster::host {

/// One processor of each core of the device that this process may run on (a core's second thread adds no
/// arithmetic and no memory channel), at most OMP_NUM_THREADS of them when that is set. None is an error.
Result<std::vector<int>> workerCpus(const DeviceInfo& info);

/// Keeps the calling thread, and threads that it starts from then on, on `cpus`.
Status bindThread(const std::vector<int>& cpus);

}  // namespace muster::host
