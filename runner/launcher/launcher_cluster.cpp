// SPDX-License-Identifier: Apache-2.0
// Slurm and Kubernetes.
#include <fmt/format.h>

#include <charconv>

#include "runner/core/text.h"
#include "runner/hosts/host_list.h"
#include "runner/launcher/launcher_kinds.h"

namespace muster {
namespace {

constexpr uint64_t kFirstSpecialStep = 0xfffffff0;  // batch script, extern, interactive and pending steps

Result<uint64_t> slurmId(const LauncherVariables& variables, const std::string& name) {
  const std::string text = variables.text(name);
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size())
    return variables.wrong(fmt::format("{}={}, expected a whole number", name, printable(text, 60)));
  return value;
}

/// A pod's name: "train-3" of the host name "train-3.service.space.svc.cluster.local", and what follows it.
struct PodName {
  std::string stem;    ///< "train"
  int ordinal = -1;    ///< 3; -1: the name does not end with a number
  std::string domain;  ///< ".service.space.svc.cluster.local"
};

PodName podName(const std::string& hostName) {
  PodName pod;
  const size_t dot = hostName.find('.');
  const std::string first = hostName.substr(0, dot);
  if (dot != std::string::npos) pod.domain = hostName.substr(dot);
  const size_t dash = first.rfind('-');
  if (dash == std::string::npos) return pod;
  int ordinal = 0;
  const char* end = first.data() + first.size();
  const auto [at, failure] = std::from_chars(first.data() + dash + 1, end, ordinal);
  if (failure != std::errc() || at != end || ordinal < 0) return pod;
  pod.stem = first.substr(0, dash);
  pod.ordinal = ordinal;
  return pod;
}

Launcher pod(int rank, int count, const std::string& firstPod, const std::string& why) {
  Launcher launcher;
  launcher.kind = LauncherKind::kKubernetes;
  launcher.nodeCount = count;
  launcher.nodeRank = rank;
  if (count > 1) launcher.store.host = firstPod;
  launcher.why = why;
  return launcher;
}

Error countMissing(const LauncherVariables& variables, const std::string& what) {
  return variables.wrong(
      what +
      ", but nothing says how many pods there are; set MUSTER_NNODES or give --nnodes (1 where "
      "each pod is to test its node alone)");
}

/// "<jobset>-<replicated job>-<job>-<pod>": names as the JobSet controller makes them.
Detected detectJobSet(const LauncherVariables& variables, const LauncherFlags& flags, int index,
                      const PodName& name) {
  const std::string group = variables.text("JOBSET_NAME") + "-" + variables.text("REPLICATED_JOB_NAME");
  const std::string what = fmt::format("Kubernetes JobSet {}, JOB_COMPLETION_INDEX={}", group, index);
  if (!flags.nodeCount) return countMissing(variables, what);
  const PodName job = podName(name.stem);
  if (name.ordinal >= 0 && (job.ordinal < 0 || job.stem != group))
    return variables.wrong(
        fmt::format("the host name {}-{} is not {}-<job>-<pod>; check JOBSET_NAME and "
                    "REPLICATED_JOB_NAME",
                    name.stem, name.ordinal, group));
  if (job.ordinal > 0 && !flags.nodeRank)
    return variables.wrong(
        fmt::format("{} is job {} of several, so the index alone does not number the nodes; use "
                    "one job with completions = nodes, or set MUSTER_NODE_RANK",
                    what, job.ordinal));
  // A JobSet's pods find each other under its own name.
  const std::string domain = name.domain.empty() ? "." + variables.text("JOBSET_NAME") : name.domain;
  return std::optional<Launcher>(
      pod(flags.nodeRank.value_or(index), *flags.nodeCount, group + "-0-0" + domain, what));
}

Detected detectIndexedJob(const LauncherVariables& variables, const LauncherFlags& flags,
                          const PodName& name) {
  MUSTER_TRY(const int index, variables.number("JOB_COMPLETION_INDEX", 0, kMaxNodes - 1));
  if (variables.has("JOBSET_NAME") && variables.has("REPLICATED_JOB_NAME"))
    return detectJobSet(variables, flags, index, name);
  const std::string what = fmt::format("Kubernetes indexed job, JOB_COMPLETION_INDEX={}", index);
  if (!flags.nodeCount) return countMissing(variables, what);
  // On the host's network a pod has the node's name, which tells nothing of its siblings.
  const bool own = name.ordinal == index;
  return std::optional<Launcher>(
      pod(index, *flags.nodeCount, own ? name.stem + "-0" + name.domain : "", what));
}

}  // namespace

Detected detectSlurm(const Environment& environment) {
  const LauncherVariables variables(environment, "Slurm");
  const std::string stepName = variables.has("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID";
  if (!variables.has(stepName)) return std::optional<Launcher>();
  MUSTER_TRY(const uint64_t step, slurmId(variables, stepName));
  if (step >= kFirstSpecialStep) return std::optional<Launcher>();  // an sbatch script itself is one node
  MUSTER_TRY(const uint64_t job, slurmId(variables, "SLURM_JOB_ID"));
  Launcher launcher;
  launcher.kind = LauncherKind::kSlurm;
  MUSTER_TRY(launcher.nodeCount, variables.number("SLURM_STEP_NUM_NODES", 1, kMaxNodes));
  MUSTER_TRY(launcher.nodeRank, variables.number("SLURM_NODEID", 0, kMaxNodes - 1));
  MUSTER_TRY(launcher.localRank, variables.number("SLURM_LOCALID", 0, kMaxProcesses));
  launcher.why = fmt::format("Slurm step {}.{}: SLURM_NODEID={} of SLURM_STEP_NUM_NODES={}", job, step,
                             launcher.nodeRank, launcher.nodeCount);
  if (launcher.nodeRank >= launcher.nodeCount) return variables.wrong(launcher.why + " is out of its range");
  if (!variables.has("SLURM_STEP_NODELIST"))
    return variables.wrong("SLURM_STEP_NODELIST is not set; start muster by srun");
  MUSTER_TRY(launcher.nodes,
             expandHostList(variables.text("SLURM_STEP_NODELIST")).context("Slurm: SLURM_STEP_NODELIST"));
  if (static_cast<int>(launcher.nodes.size()) != launcher.nodeCount)
    return variables.wrong(fmt::format("SLURM_STEP_NODELIST={} names {} nodes, SLURM_STEP_NUM_NODES says {}",
                                       printable(variables.text("SLURM_STEP_NODELIST"), 120),
                                       launcher.nodes.size(), launcher.nodeCount));
  launcher.job = fmt::format("{}.{}", job, step);
  if (launcher.nodeCount > 1) launcher.store.host = launcher.nodes.front();
  return std::optional<Launcher>(std::move(launcher));
}

Detected detectKubernetes(const Environment& environment, const LauncherFlags& flags,
                          const std::string& hostName) {
  const LauncherVariables variables(environment, "Kubernetes");
  const PodName name = podName(hostName);
  // Kubernetes alone sets JOB_COMPLETION_INDEX, also where pods are not told of its services.
  if (variables.has("JOB_COMPLETION_INDEX")) return detectIndexedJob(variables, flags, name);
  // A StatefulSet's pod is told by its name only, so it counts as one only where somebody said how many.
  const bool statefulSet = variables.has("KUBERNETES_SERVICE_HOST") && flags.nodeCount && name.ordinal >= 0 &&
                           !variables.has("RANK");
  if (!statefulSet) return std::optional<Launcher>();
  return std::optional<Launcher>(
      pod(name.ordinal, *flags.nodeCount, name.stem + "-0" + name.domain,
          fmt::format("Kubernetes StatefulSet {}, pod {}", name.stem, name.ordinal)));
}

}  // namespace muster
