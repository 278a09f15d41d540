// SPDX-License-Identifier: Apache-2.0
// What the fleet's report says of a run on Slurm: which nodes are not accepted, and why.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runner/app/fleet/fleet_command.h"
#include "runner/core/result.h"
#include "runner/slurm/drain.h"
#include "runner/slurm/submission.h"
#include "runner/slurm/witness.h"

namespace muster {

/// "exit 1, RUN/fleet", or why the fleet job, which ended with `code`, left no report.
std::string fleetReportText(const slurm::RunStore& run, int code);

/// Shows each node that keeps the run from being accepted, at most 40 of them, and the fleet's exit code;
/// returns that code, or kExitIncomplete where there is no report.
Result<int> showFleet(const slurm::RunStore& run, int code);

/// Whether the fleet's report need not be made anew while no node is retested: that could only lose what
/// Slurm has forgotten since. A report that lacks a node's result, or could not confirm it, is tried again.
bool reportStands(const slurm::RunStore& run);

/// The nodes that the fleet's report rejects; none while there is none.
Result<std::set<std::string>> rejectedByFleet(const slurm::RunStore& run);

/// The nodes of which the fleet's report has no record that counts; none while it cannot be read.
std::set<std::string> uncountedByFleet(const slurm::RunStore& run);

/// kUsage where the run was submitted with a scenario: it must not act on nodes. A record that alone says so
/// concerns its node only: it does not count (run_records.h).
Status requireMeasured(const slurm::RunStore& run, const std::string& action);

/// The records of a run judged anew, as its fleet job judges them; writes nothing.
Result<JudgedFleet> judgeRun(const slurm::RunStore& run, const slurm::Witness& witness, bool unconfirmed);

/// The rejected nodes of a run and those at the ends of a link that fails, by their own verdict or by the
/// fleet's (their peers may have named one that met its own limits), and why. The records are judged again:
/// what fleet.json alone says rejects nobody and spares nobody. A node is rejected for certain where its
/// record, its exit file, fleet.json and Slurm agree; by the fleet, where Slurm says so of the fleet job too.
/// All that only some of these reject is unconfirmed. `unconfirmed`: what Slurm has forgotten counts as
/// the folder has it.
Result<std::vector<slurm::RejectedNode>> rejectedNodes(const slurm::RunStore& run,
                                                       const slurm::Witness& witness, bool unconfirmed);

}  // namespace muster
