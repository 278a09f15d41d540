// SPDX-License-Identifier: Apache-2.0
// What the fleet's report says of a run on Slurm: which nodes are not accepted, and why.
#pragma once

#include <vector>

#include "runner/core/result.h"
#include "runner/slurm/drain.h"
#include "runner/slurm/submission.h"

namespace muster {

/// Shows each node that keeps the run from being accepted, at most 40 of them, and the fleet's exit code;
/// returns that code.
Result<int> showFleet(const slurm::RunStore& run, int code);

/// The rejected nodes of a run, by their own verdict or by the fleet's (their peers may have named one that
/// met its own limits), and why.
Result<std::vector<slurm::RejectedNode>> rejectedNodes(const slurm::RunStore& run);

}  // namespace muster
