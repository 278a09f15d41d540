// SPDX-License-Identifier: Apache-2.0
// Selects the launcher and applies the user's flags.
#include "runner/launcher/launcher.h"

#include <fmt/format.h>

#include "runner/launcher/launcher_kinds.h"

namespace muster {
namespace {

Error wrong(const std::string& what) {
  return {ErrorCode::kUsage, what, ""};
}

/// The flags, with MUSTER_NNODES, MUSTER_NODE_RANK and MUSTER_RENDEZVOUS where they were not given.
Result<LauncherFlags> withVariables(LauncherFlags flags, const Environment& environment) {
  const LauncherVariables variables(environment, "environment");
  if (!flags.nodeCount && variables.has("MUSTER_NNODES")) {
    MUSTER_TRY(flags.nodeCount, variables.number("MUSTER_NNODES", 1, kMaxNodes));
  }
  if (!flags.nodeRank && variables.has("MUSTER_NODE_RANK")) {
    MUSTER_TRY(flags.nodeRank, variables.number("MUSTER_NODE_RANK", 0, kMaxNodes - 1));
  }
  if (flags.rendezvous.empty()) flags.rendezvous = variables.text("MUSTER_RENDEZVOUS");
  if (flags.nodeCount && (*flags.nodeCount < 1 || *flags.nodeCount > kMaxNodes))
    return wrong(fmt::format("--nnodes {}, expected 1 to {}", *flags.nodeCount, kMaxNodes));
  if (flags.nodeRank && *flags.nodeRank < 0)
    return wrong(fmt::format("--node-rank {}, expected 0 or more", *flags.nodeRank));
  return flags;
}

bool standAlone(const LauncherFlags& flags) {
  if (!flags.nodeCount || !flags.nodeRank) return false;
  return *flags.nodeCount == 1 || !flags.rendezvous.empty();
}

Launcher fromFlags(const LauncherFlags& flags) {
  Launcher launcher;
  launcher.kind = LauncherKind::kFlags;
  launcher.nodeCount = *flags.nodeCount;
  launcher.nodeRank = *flags.nodeRank;
  launcher.why = fmt::format("--nnodes {} --node-rank {}", *flags.nodeCount, *flags.nodeRank);
  return launcher;
}

/// The innermost launcher that started this process.
Result<Launcher> fromLauncher(const LauncherFlags& flags, const Environment& environment,
                              const std::string& hostName) {
  MUSTER_TRY(auto openMpi, detectOpenMpi(environment));
  if (openMpi) return *openMpi;
  MUSTER_TRY(auto torchrun, detectTorchrun(environment));
  if (torchrun) return *torchrun;
  MUSTER_TRY(auto slurm, detectSlurm(environment));
  if (slurm) return *slurm;
  MUSTER_TRY(auto kubernetes, detectKubernetes(environment, flags, hostName));
  if (kubernetes) return *kubernetes;
  MUSTER_TRY(auto plain, detectPlain(environment));
  if (plain) return *plain;
  Launcher none;
  none.why = "no launcher: this node alone";
  return none;
}

/// What the flags say beside a launcher must be what it says itself.
Status checkFlags(const LauncherFlags& flags, const Launcher& launcher) {
  if (launcher.kind == LauncherKind::kNone &&
      (flags.nodeCount.value_or(1) > 1 || flags.nodeRank.value_or(0) > 0 || !flags.rendezvous.empty()))
    return wrong(
        "no launcher was found, so --nnodes, --node-rank and --rendezvous (or MUSTER_NNODES, "
        "MUSTER_NODE_RANK, MUSTER_RENDEZVOUS) are needed together");
  const bool otherCount = flags.nodeCount && *flags.nodeCount != launcher.nodeCount;
  const bool otherRank = flags.nodeRank && *flags.nodeRank != launcher.nodeRank;
  if (otherCount || otherRank)
    return wrong(
        fmt::format("{} contradicts {}; to overrule the launcher give --nnodes, --node-rank and "
                    "--rendezvous together",
                    otherCount ? fmt::format("--nnodes {}", *flags.nodeCount)
                               : fmt::format("--node-rank {}", *flags.nodeRank),
                    launcher.why));
  return {};
}

Result<Launcher> complete(Launcher launcher, const LauncherFlags& flags) {
  if (launcher.nodeCount == 1) {
    // A pod or task that tests its node alone is node 0 of one, whatever its index.
    launcher.nodeRank = 0;
    launcher.store = {};
    return launcher;
  }
  if (launcher.nodeRank >= launcher.nodeCount)
    return wrong(fmt::format("{}: node rank {} is not below {} nodes", launcher.why, launcher.nodeRank,
                             launcher.nodeCount));
  if (!flags.rendezvous.empty()) {
    MUSTER_TRY(const StoreAddress address, parseStoreAddress(flags.rendezvous).context("--rendezvous"));
    launcher.store = address;
    launcher.why += " --rendezvous " + address.text();
  }
  if (launcher.store.host.empty())
    return wrong(launcher.why +
                 " does not tell where node 0 is; give --rendezvous host or MUSTER_RENDEZVOUS");
  return launcher;
}

}  // namespace

const char* launcherName(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::kNone:
      return "none";
    case LauncherKind::kFlags:
      return "flags";
    case LauncherKind::kOpenMpi:
      return "open-mpi";
    case LauncherKind::kTorchrun:
      return "torchrun";
    case LauncherKind::kSlurm:
      return "slurm";
    case LauncherKind::kKubernetes:
      return "kubernetes";
    case LauncherKind::kPlain:
      return "plain";
  }
  return "none";
}

Result<Launcher> detectLauncher(const LauncherFlags& given, const Environment& environment,
                                const std::string& hostName) {
  MUSTER_TRY(const LauncherFlags flags, withVariables(given, environment));
  if (standAlone(flags)) {
    if (*flags.nodeRank >= *flags.nodeCount)
      return wrong(fmt::format("--node-rank {} is not below --nnodes {}", *flags.nodeRank, *flags.nodeCount));
    return complete(fromFlags(flags), flags);
  }
  MUSTER_TRY(Launcher launcher, fromLauncher(flags, environment, hostName));
  // Of one that was started to test its node alone, an index in flags or variables is no rank.
  const bool alone =
      launcher.kind != LauncherKind::kNone && launcher.nodeCount == 1 && flags.nodeCount.value_or(1) == 1;
  if (!alone) {
    MUSTER_CHECK_OK(checkFlags(flags, launcher));
  }
  return complete(std::move(launcher), flags);
}

}  // namespace muster
