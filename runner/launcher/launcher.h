// SPDX-License-Identifier: Apache-2.0
// Which launcher started this process, and what place it gave it among the nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/rendezvous/wire/store_address.h"

namespace muster {

enum class LauncherKind { kNone, kFlags, kOpenMpi, kTorchrun, kSlurm, kKubernetes, kPlain };
/// none, flags, open-mpi, torchrun, slurm, kubernetes, plain
const char* launcherName(LauncherKind kind);

/// --nnodes, --node-rank and --rendezvous, or MUSTER_NNODES, MUSTER_NODE_RANK and MUSTER_RENDEZVOUS. All
/// three stand for themselves; fewer complete or replace what the launcher says.
struct LauncherFlags {
  std::optional<int> nodeCount;
  std::optional<int> nodeRank;
  std::string rendezvous;  ///< host[:port]
};

/// A process's place among the nodes of a run.
struct Launcher {
  LauncherKind kind = LauncherKind::kNone;
  int nodeRank = 0;
  int nodeCount = 1;
  int localRank = 0;               ///< among the processes that the launcher started on this node
  std::vector<std::string> nodes;  ///< names by node rank, where the launcher tells them; else empty
  StoreAddress store;  ///< where node 0's store is; without a host with one node, without a port as of `job`
  std::string job;     ///< what tells jobs of this launcher apart that share a token: see storePort()
  std::string why;     ///< "Slurm step 12.0: SLURM_NODEID=2 of SLURM_STEP_NUM_NODES=4"

  /// One process a node runs Muster; the others end at once.
  [[nodiscard]] bool leadsNode() const { return localRank == 0; }
};

/// Detects the innermost launcher: flags, Open MPI, torchrun, a Slurm step, Kubernetes, plain RANK and
/// WORLD_SIZE, none. `hostName` is the full name of this host (Kubernetes puts a pod's index there). Pure.
/// kUsage names variables that are wrong, missing or contradict each other, and what to do.
Result<Launcher> detectLauncher(const LauncherFlags& flags,
                                const std::map<std::string, std::string>& environment,
                                const std::string& hostName);

}  // namespace muster
