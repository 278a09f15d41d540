// SPDX-License-Identifier: Apache-2.0
// The programs that run an NVLink fabric: the fabric manager's log, and whether IMEX is ready.
#pragma once

#include <ctime>

#include "kernels/host/inventory/root.h"
#include "kernels/interfaces/inventory.h"

namespace muster::cuda {

/// The reading `fabric_manager_errors`: errors logged at `since` or later in the file that NVIDIA's Fabric
/// Manager User Guide names (LOG_FILE_NAME, by default). Nothing where there is none; `fabric_manager_log`
/// says why one cannot be read. It must be a regular file of root or this user, which not everybody can
/// write; of a large one the end is read.
void readFabricManagerLog(const Root& root, std::time_t since, Readings& out);

/// The reading `imex_ready`, by NVIDIA's `nvidia-imex-ctl -q`; nothing where that is not installed.
void readImex(const Root& root, Readings& out);

}  // namespace muster::cuda
