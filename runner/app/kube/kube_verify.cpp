// SPDX-License-Identifier: Apache-2.0
// `muster k8s verify`: what keeps a run from starting, and how to fix it. Changes nothing.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/app/kube/kube_options.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/kube/objects.h"
#include "runner/slurm/node_names.h"

namespace muster {
namespace {

/// Prints one line for each check and counts what is to be fixed.
class Checks {
 public:
  void ok(const std::string& what) { printText("ok    {}\n", what); }
  void fix(const std::string& what, const std::string& how) {
    printText("FIX   {}\n      {}\n", what, how);
    ++faults_;
  }
  void note(const std::string& what) { printText("note  {}\n", what); }
  [[nodiscard]] int faults() const { return faults_; }

 private:
  int faults_ = 0;
};

/// Names of nodes for one line.
std::string listed(const std::vector<std::string>& names) {
  return printable(slurm::shortList(names), 300);
}

Status checkVersion(const kube::Cluster& cluster, Checks& checks) {
  MUSTER_TRY(const Json version, kube::ask(cluster, {"version"}));
  const std::string minor = kube::textAt(version, "/serverVersion/minor");
  const std::string text = kube::textAt(version, "/serverVersion/gitVersion");
  if (std::atoi(minor.c_str()) < 29)
    checks.fix("Kubernetes " + text, "the chart needs 1.29 or newer (backoffLimitPerIndex)");
  else
    checks.ok("Kubernetes " + text);
  return {};
}

/// The taints that pods of the chart do not tolerate unless the values say so.
bool tolerated(const kube::Taint& taint, const KubeOptions& o) {
  return taint.effect == "PreferNoSchedule" || taint.key == o.gpuResource || taint.key == o.taint ||
         taint.key == "node.kubernetes.io/unschedulable";
}

void checkNodes(const std::vector<const kube::NodeInfo*>& nodes, const KubeOptions& o, Checks& checks) {
  std::vector<std::string> down, noGpus, noLabel, noRdma, tainted, gated;
  std::set<std::string> keys;
  NodesByGpus counts;
  for (const kube::NodeInfo* node : nodes) {
    if (!node->unavailable().empty()) down.push_back(node->name);
    counts[node->count(o.gpuResource)].push_back(node->name);
    if (node->count(o.gpuResource) == 0) noGpus.push_back(node->name);
    if (node->labels.count("nvidia.com/gpu.product") == 0) noLabel.push_back(node->name);
    if (!o.rdmaResource.empty() && node->count(o.rdmaResource) == 0) noRdma.push_back(node->name);
    for (const kube::Taint& taint : node->taints) {
      if (taint.key == o.taint) gated.push_back(node->name);
      if (tolerated(taint, o)) continue;
      tainted.push_back(node->name);
      keys.insert(taint.key);
    }
  }
  if (!down.empty())
    checks.fix("not ready or cordoned: " + listed(down),
               "kubectl describe node shows why; kubectl uncordon if it was meant to be used");
  if (!noGpus.empty())
    checks.fix(fmt::format("no {}: {}", o.gpuResource, listed(noGpus)),
               "check the device plugin's pod on these nodes (GPU Operator: nvidia-device-plugin-daemonset) "
               "and the driver");
  else if (counts.size() > 1)
    checks.fix("different numbers of GPUs: " + numbersText(counts), kOneNumber);
  else
    checks.ok(fmt::format("{} nodes with {} x {}", nodes.size(), counts.empty() ? 0 : counts.begin()->first,
                          o.gpuResource));
  if (!noLabel.empty())
    checks.note("no label nvidia.com/gpu.product (GPU feature discovery): " + listed(noLabel));
  if (!noRdma.empty())
    checks.fix(
        fmt::format("no {}: {}", o.rdmaResource, listed(noRdma)),
        "check the RDMA device plugin (NVIDIA Network Operator, or the cloud's) and its resource name");
  if (!tainted.empty())
    checks.fix(fmt::format("taints {} on {}", join({keys.begin(), keys.end()}, ", "), listed(tainted)),
               "add `tolerations` to the values (--values), or remove the taints");
  if (!gated.empty())
    checks.note(fmt::format("still has the preflight taint {}: {}", o.taint, listed(gated)));
}

/// Quotas that leave less than one pod of GPUs.
Status checkQuotas(const KubeOptions& o, size_t nodes, Checks& checks) {
  MUSTER_TRY(const Json list, kube::askList(o.cluster, {"get", "resourcequotas"}));
  const std::string resource = "requests." + o.gpuResource;
  for (const Json& quota : kube::valueAt(list, "/items")) {
    const Json& hard = kube::valueAt(quota, "/status/hard");
    const Json& used = kube::valueAt(quota, "/status/used");
    const std::string name = kube::textAt(quota, "/metadata/name");
    for (const auto& [key, need] :
         {std::pair<std::string, size_t>{resource, nodes}, {"pods", nodes}, {"count/jobs.batch", nodes}}) {
      if (!hard.is_object() || !hard.contains(key) || !hard[key].is_string()) continue;
      const auto left = std::atoll(hard[key].get<std::string>().c_str()) -
                        (used.is_object() && used.contains(key) && used[key].is_string()
                             ? std::atoll(used[key].get<std::string>().c_str())
                             : 0);
      if (left < static_cast<long long>(need))
        checks.fix(fmt::format("quota {} leaves {} of {}; at least {} are needed", name, left, key, need),
                   "raise the ResourceQuota, or use another namespace (--namespace)");
    }
  }
  return {};
}

/// The API groups that optional parts of the chart need.
Status checkGroups(const KubeOptions& o, Checks& checks) {
  MUSTER_TRY(const Json groups, kube::ask(o.cluster, {"get", "--raw", "/apis"}));
  std::set<std::string> names;
  for (const Json& group : kube::valueAt(groups, "/groups")) names.insert(kube::textAt(group, "/name"));
  if (names.count("jobset.x-k8s.io") > 0)
    checks.ok("JobSet is installed");
  else if (o.controller == "JobSet")
    checks.fix("JobSet is not installed",
               "install its controller, or use --controller Job, which needs none");
  else
    checks.note("JobSet is not installed: cluster runs use an Indexed Job");
  if (names.count("kueue.x-k8s.io") == 0)
    checks.note("Kueue is not installed: leave `queue` and `topology` unset");
  return {};
}

}  // namespace

Result<int> kubeVerify(KubeOptions& o) {
  Checks checks;
  MUSTER_CHECK_OK(checkVersion(o.cluster, checks));
  MUSTER_TRY(const kube::Nodes known, kube::readNodes(o.cluster));
  std::vector<const kube::NodeInfo*> nodes;
  if (o.nodes.empty() || o.nodes == "all") {
    for (const auto& [name, node] : known)
      if (!node.controlPlane() || node.has(o.gpuResource)) nodes.push_back(&node);
  } else {
    MUSTER_TRY(const auto names, slurm::nodeNames(o.nodes).context("--nodes"));
    for (const std::string& name : names) {
      if (const auto node = known.find(name); node != known.end())
        nodes.push_back(&node->second);
      else
        checks.fix("Kubernetes has no node " + name, "see kubectl get nodes; has its kubelet joined?");
    }
  }
  if (nodes.empty()) checks.fix("no node to test", "see kubectl get nodes");
  checkNodes(nodes, o, checks);
  MUSTER_CHECK_OK(checkQuotas(o, nodes.size(), checks));
  MUSTER_CHECK_OK(checkGroups(o, checks));
  printText("{}\n", checks.faults() == 0 ? "ready" : fmt::format("{} to fix", checks.faults()));
  return checks.faults() == 0 ? kExitAccepted : kExitIncomplete;
}

}  // namespace muster
