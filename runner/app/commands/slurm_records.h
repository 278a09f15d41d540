// SPDX-License-Identifier: Apache-2.0
// Which records of a run on Slurm count: each lies where its node writes it, is a file of the run's user,
// and says what Slurm says of the node's job.
#pragma once

#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"
#include "runner/slurm/witness.h"

namespace muster {

/// The node that a path below records/ belongs to: nodes/NODE/record.json, cluster/NODE/record.json or
/// cluster/NODE/node-0002/record.json, and the folders of cut runs. Empty: no job of the run writes there.
std::string nodeOfPath(const slurm::Submission& submission, const std::filesystem::path& path);

/// `unconfirmed`: what Slurm has forgotten counts as the folder has it; else it does not count.
/// `witness` must outlive the rules.
Result<fleet::RecordRules> slurmRules(const slurm::RunStore& run, const slurm::Witness& witness,
                                      bool unconfirmed);

/// What a report says of nodes whose jobs Slurm has forgotten; empty where it remembers all.
std::string forgottenNote(const slurm::RunStore& run, const slurm::Witness& witness);

}  // namespace muster
