// SPDX-License-Identifier: Apache-2.0
// Launch position: this process's rank among the nodes of a run, from the launcher or the user, and its link
// to the other nodes.
#pragma once

#include <filesystem>
#include <memory>

#include "runner/app/node/options.h"
#include "runner/app/node/run_folder.h"
#include "runner/cluster/cluster_link.h"
#include "runner/core/json.h"
#include "runner/launcher/launcher.h"
#include "runner/plan/plan.h"

namespace muster {

/// Detects the position from flags and environment; simulated runs have none.
Result<Launcher> findLaunchPosition(const RunOptions& options);

/// What a record keeps of it.
Json launcherJson(const Launcher& position);

/// Whether any stage of the plan that this job runs wants all nodes.
bool wantsCluster(const Plan& plan, const RunOptions& options);

/// Ties this node to the others, where the plan wants that and there are others, or where nodes have to leave
/// together and MUSTER_TOKEN lets them; else a null pointer. kUsage
/// for a MUSTER_TOKEN that is missing or too short, for a node that runs something else than node 0, and for
/// a rank that is taken. `earlier`: the journal of a run that is resumed.
Result<std::unique_ptr<ClusterLink>> joinCluster(const Plan& plan, const RunOptions& options,
                                                 const Launcher& position, const Journal* earlier = nullptr);

/// Whether the launcher ends all processes as soon as one of them exits with another code than 0.
bool endsAllWithTheFirst(const Launcher& position);

/// The folder of one of several nodes inside the one that all were given; kUsage where that one is a node's
/// own.
Result<std::filesystem::path> nodeFolder(const std::filesystem::path& given, const Launcher& position);

}  // namespace muster
