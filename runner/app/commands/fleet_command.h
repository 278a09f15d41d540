// SPDX-License-Identifier: Apache-2.0
// Result of `muster fleet`, for commands that act on it.
#pragma once

#include "reports/fleet/fleet_record.h"
#include "runner/app/commands/commands.h"
#include "runner/slurm/witness.h"

namespace muster {

struct JudgedFleet {
  fleet::FleetRecords records;
  fleet::Fleet fleet;
};

/// Reads and judges the records; writes nothing. `witness` is what Slurm says of `options.slurmRun`, which
/// may be empty.
Result<JudgedFleet> judgeFleet(const FleetCommandOptions& options, const slurm::Witness* witness);

}  // namespace muster
