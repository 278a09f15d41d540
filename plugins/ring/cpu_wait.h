// SPDX-License-Identifier: Apache-2.0
// How long this process waited for a CPU: what the kernel says, not what a slow figure suggests.
#pragma once

namespace muster::ring {

/// Seconds for which threads of this process were ready to run and did not, summed over those that live now
/// (/proc/self/task/*/schedstat). Only differences mean anything. 0 where the kernel does not tell.
double cpuWaitSeconds();

}  // namespace muster::ring
