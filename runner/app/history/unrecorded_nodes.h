// SPDX-License-Identifier: Apache-2.0
// Nodes of which a run left no record: what its journals say, and on Slurm and Kubernetes the run's folder.
#pragma once

#include <filesystem>
#include <set>
#include <vector>

#include "reports/history/delta.h"

namespace muster {

/// The folders of the runs on Slurm or Kubernetes whose records lie in `given`, or in whose records it lies.
Result<std::set<std::filesystem::path>> launchedRunsAt(const std::filesystem::path& given);

/// Adds the nodes that have no record in the runs at `given`, where `input` has the records that were read.
/// Of a run on Slurm or Kubernetes that is given, or in which it lies, each node must have one, as far as its
/// folder lies in `given`, and a journal is of the node in whose folder it lies. What is of no node goes to
/// the quarantined, and so does such a run that only lies below `given`.
Status addUnrecorded(const std::vector<std::filesystem::path>& given, history::DeltaInput& input);

}  // namespace muster
