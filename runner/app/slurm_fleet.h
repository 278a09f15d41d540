// SPDX-License-Identifier: Apache-2.0
// What the fleet's report says of a run on Slurm: which nodes are not accepted, and why.
#pragma once

#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/slurm/drain.h"
#include "runner/slurm/submission.h"

namespace muster {

/// "exit 1, RUN/fleet", or why the fleet job, which ended with `code`, left no report.
std::string fleetReportText(const slurm::RunStore& run, int code);

/// Shows each node that keeps the run from being accepted, at most 40 of them, and the fleet's exit code;
/// returns that code, or kExitIncomplete where there is no report.
Result<int> showFleet(const slurm::RunStore& run, int code);

/// kUsage where any result of the run is simulated: it must not act on nodes.
Status requireMeasured(const slurm::RunStore& run, const std::string& action);

/// The rejected nodes of a run and those at the ends of a link that fails, by their own verdict or by the
/// fleet's (their peers may have named one that met its own limits), and why.
Result<std::vector<slurm::RejectedNode>> rejectedNodes(const slurm::RunStore& run);

}  // namespace muster
