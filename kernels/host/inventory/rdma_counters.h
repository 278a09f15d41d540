// SPDX-License-Identifier: Apache-2.0
// The counters of an RDMA port, from sysfs.
#pragma once

#include "kernels/host/inventory/root.h"
#include "kernels/interfaces/rdma.h"

namespace muster {

/// Reads kRdmaCounters of one port. `sysfs` is where sysfs is mounted below `root`, "/sys".
RdmaCounters readRdmaCounters(const Root& root, const std::string& device, int port,
                              const std::string& sysfs = "/sys");

}  // namespace muster
