// SPDX-License-Identifier: Apache-2.0
// Rerun commands: the partial run that measures what one finding is about again.
#pragma once

#include <string>
#include <vector>

#include "runner/record/findings/deviations.h"

namespace muster {

/// "muster run PLAN --only gemm --device gpu5": the stages of `finding`, on its devices alone where each
/// missed a limit that does not compare it with others. Empty where no partial run of this node can measure
/// it again: the inventory, what a skipped stage lacks, a stage of all nodes, and records without run.rerun.
std::string rerunCommand(const Record& record, const Deviation& finding);

/// That command, or the commands that run each of the finding's ranks alone.
std::vector<std::string> rerunCommands(const Record& record, const Deviation& finding);

}  // namespace muster
