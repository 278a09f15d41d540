// SPDX-License-Identifier: Apache-2.0
// Open MPI, torchrun, and the plain variables that both of them also set or that stand alone.
#include <fmt/format.h>

#include "runner/hosts/host_list.h"
#include "runner/launcher/launcher_kinds.h"

namespace muster {
namespace {

/// MASTER_ADDR and MASTER_PORT, as far as they are given.
Result<StoreAddress> masterAddress(const LauncherVariables& variables) {
  MUSTER_TRY(const int port, variables.numberOr("MASTER_PORT", 1, 65535, 0));
  return StoreAddress{variables.text("MASTER_ADDR"), static_cast<uint16_t>(port)};
}

/// What ranks of `perNode` processes a node say, numbered node by node.
struct Place {
  int rank = 0, world = 1, local = 0, perNode = 1;
};

Status checkPlace(const LauncherVariables& variables, const Place& place, const std::string& names) {
  if (place.rank >= place.world)
    return variables.wrong(fmt::format("rank {} of {} ({})", place.rank, place.world, names));
  if (place.local >= place.perNode)
    return variables.wrong(
        fmt::format("local rank {} of {} on this node ({})", place.local, place.perNode, names));
  if (place.world % place.perNode != 0)
    return variables.wrong(
        fmt::format("{} processes are not a multiple of {} per node ({}); start the same number on every "
                    "node, preferably one",
                    place.world, place.perNode, names));
  return {};
}

}  // namespace

Detected detectOpenMpi(const Environment& environment) {
  const LauncherVariables variables(environment, "Open MPI");
  if (!variables.has("OMPI_COMM_WORLD_SIZE") && !variables.has("OMPI_COMM_WORLD_RANK"))
    return std::optional<Launcher>();
  Place place;
  MUSTER_TRY(place.world, variables.number("OMPI_COMM_WORLD_SIZE", 1, kMaxProcesses));
  MUSTER_TRY(place.rank, variables.number("OMPI_COMM_WORLD_RANK", 0, kMaxProcesses));
  MUSTER_TRY(place.local, variables.number("OMPI_COMM_WORLD_LOCAL_RANK", 0, kMaxProcesses));
  MUSTER_TRY(place.perNode, variables.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, kMaxProcesses));
  MUSTER_CHECK_OK(checkPlace(variables, place, "OMPI_COMM_WORLD_*"));
  // Numbered node by node, the first of each node is a multiple; spread round robin, rank 1 gives it away.
  if (place.rank % place.perNode != place.local)
    return variables.wrong(
        fmt::format("rank {} is number {} of {} on its node, so ranks are distributed round-robin over the "
                    "nodes; start one per node: mpirun --map-by ppr:1:node",
                    place.rank, place.local, place.perNode));
  Launcher launcher;
  launcher.kind = LauncherKind::kOpenMpi;
  launcher.nodeCount = place.world / place.perNode;
  launcher.nodeRank = place.rank / place.perNode;
  launcher.localRank = place.local;
  MUSTER_TRY(launcher.store, masterAddress(variables));
  // mpirun inside of a Slurm allocation starts rank 0 on its first node.
  if (const LauncherVariables slurm(environment, "Slurm");
      launcher.store.host.empty() && slurm.has("SLURM_JOB_NODELIST")) {
    MUSTER_TRY(const auto hosts,
               expandHostList(slurm.text("SLURM_JOB_NODELIST")).context("SLURM_JOB_NODELIST"));
    launcher.store = {hosts.front(), 0};
  }
  launcher.why = fmt::format("Open MPI: OMPI_COMM_WORLD_RANK={} of OMPI_COMM_WORLD_SIZE={}, {} per node",
                             place.rank, place.world, place.perNode);
  return std::optional<Launcher>(std::move(launcher));
}

Detected detectTorchrun(const Environment& environment) {
  const LauncherVariables variables(environment, "torchrun");
  if (!variables.has("GROUP_RANK") && !variables.has("TORCHELASTIC_RUN_ID")) return std::optional<Launcher>();
  Place place;
  MUSTER_TRY(place.world, variables.number("WORLD_SIZE", 1, kMaxProcesses));
  MUSTER_TRY(place.rank, variables.number("RANK", 0, kMaxProcesses));
  MUSTER_TRY(place.perNode, variables.number("LOCAL_WORLD_SIZE", 1, kMaxProcesses));
  MUSTER_TRY(place.local, variables.number("LOCAL_RANK", 0, kMaxProcesses));
  MUSTER_TRY(const int group, variables.number("GROUP_RANK", 0, kMaxNodes - 1));
  MUSTER_CHECK_OK(checkPlace(variables, place, "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE"));
  MUSTER_TRY(const int groups,
             variables.numberOr("GROUP_WORLD_SIZE", 1, kMaxNodes, place.world / place.perNode));
  if (groups != place.world / place.perNode || group != place.rank / place.perNode)
    return variables.wrong(
        fmt::format("GROUP_RANK={} of {} contradicts RANK={} of WORLD_SIZE={} with "
                    "LOCAL_WORLD_SIZE={}; give every node the same --nproc-per-node",
                    group, groups, place.rank, place.world, place.perNode));
  Launcher launcher;
  launcher.kind = LauncherKind::kTorchrun;
  launcher.nodeCount = groups;
  launcher.nodeRank = group;
  launcher.localRank = place.local;
  if (groups > 1) {
    if (!variables.has("MASTER_ADDR"))
      return variables.wrong("MASTER_ADDR is not set; give --rendezvous host");
    // torchrun's agent listens on MASTER_PORT itself.
    MUSTER_TRY(const StoreAddress agent, masterAddress(variables));
    launcher.store.host = agent.host;
    launcher.job = agent.text();
  }
  launcher.why = fmt::format("torchrun: GROUP_RANK={} of {}, LOCAL_RANK={}", group, groups, place.local);
  return std::optional<Launcher>(std::move(launcher));
}

Detected detectPlain(const Environment& environment) {
  const LauncherVariables variables(environment, "RANK and WORLD_SIZE");
  if (!variables.has("RANK") && !variables.has("WORLD_SIZE")) return std::optional<Launcher>();
  Place place;
  MUSTER_TRY(place.world, variables.number("WORLD_SIZE", 1, kMaxProcesses));
  MUSTER_TRY(place.rank, variables.number("RANK", 0, kMaxProcesses));
  if (variables.has("LOCAL_WORLD_SIZE") || variables.has("LOCAL_RANK")) {
    MUSTER_TRY(place.perNode, variables.number("LOCAL_WORLD_SIZE", 1, kMaxProcesses));
    MUSTER_TRY(place.local, variables.number("LOCAL_RANK", 0, kMaxProcesses));
  }
  MUSTER_CHECK_OK(checkPlace(variables, place, "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE"));
  if (place.rank % place.perNode != place.local)
    return variables.wrong(fmt::format("RANK={} contradicts LOCAL_RANK={} of LOCAL_WORLD_SIZE={}", place.rank,
                                       place.local, place.perNode));
  Launcher launcher;
  launcher.kind = LauncherKind::kPlain;
  launcher.nodeCount = place.world / place.perNode;
  launcher.nodeRank = place.rank / place.perNode;
  launcher.localRank = place.local;
  if (launcher.nodeCount > 1) {
    MUSTER_TRY(launcher.store, masterAddress(variables));
  }
  launcher.why = fmt::format("RANK={} of WORLD_SIZE={}, {} per node", place.rank, place.world, place.perNode);
  return std::optional<Launcher>(std::move(launcher));
}

}  // namespace muster
