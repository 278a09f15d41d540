// SPDX-License-Identifier: Apache-2.0
// Result of `muster fleet`, for commands that act on it.
#pragma once

#include "reports/acceptance/fleet_clauses.h"
#include "reports/fleet/fleet_record.h"
#include "runner/app/fleet/fleet_inputs.h"
#include "runner/app/fleet/fleet_options.h"
#include "runner/slurm/witness.h"

namespace muster {

struct JudgedFleet {
  fleet::FleetRecords records;
  fleet::Fleet fleet;
  FleetInputs inputs;
};

/// Reads and judges the records below `run` by these inputs. Pure but for reading them: what it returns
/// depends on nothing else.
Result<JudgedFleet> judgeRecords(FleetInputs inputs, const std::filesystem::path& run,
                                 const fleet::RecordRules& rules);

/// The same of records below `run` that were read, under their waivers.
Result<JudgedFleet> judgeRead(FleetInputs inputs, fleet::FleetRecords records,
                              const std::filesystem::path& run);

/// What the nodes show of the clauses, by their records below `run`. An accepted node that lacks evidence for
/// a clause, or does not meet it, is incomplete from then on, and so is the fleet. Reads each record once
/// more; one that has changed meanwhile is an error.
Result<FleetClauses> applyRequirements(const Requirements& requirements, const std::filesystem::path& run,
                                       JudgedFleet& judged);

/// Reads and judges the records; writes nothing. `witness` is what Slurm says of `options.slurmRun`, which
/// may be empty.
Result<JudgedFleet> judgeFleet(const FleetCommandOptions& options, const slurm::Witness* witness);

/// The latest end of a run that is judged at `at`, in seconds since 1970: one that ended later has another
/// clock.
double latestEnd(double at);

}  // namespace muster
