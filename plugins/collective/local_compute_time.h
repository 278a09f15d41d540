// SPDX-License-Identifier: Apache-2.0
// How long a rank takes for its own part: what tells a straggler from those that wait for it.
#pragma once

#include "plugins/collective/tests.h"

namespace muster::collective {

constexpr uint64_t kLocalComputeBytes = 16u << 20;

/// Mean seconds in which this rank fills kLocalComputeBytes of inputs, of `probes` times behind a common
/// barrier. In a collective all ranks take as long as the slowest; here nobody waits for anybody, each clock
/// measures only its own rank, and the work is the same on all. The mean, since a rank may stand still only
/// now and then. All ranks call it; `probes` is 1 or more.
Result<double> measureLocalComputeTime(const Bench& bench, int probes);

}  // namespace muster::collective
