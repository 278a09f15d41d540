// SPDX-License-Identifier: Apache-2.0
// Makes the values of the Helm chart.
#include "runner/app/kube/kube_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/inputs/toml_input.h"
#include "runner/slurm/node_names.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr uint64_t kMostInput = 1000u << 10;  // bytes; Kubernetes keeps at most 1 MiB in a ConfigMap

/// REPOSITORY[:TAG][@DIGEST] as the chart's values.
Json imageValues(const std::string& image) {
  Json values;
  const size_t at = image.find('@');
  std::string name = image.substr(0, at);
  if (at != std::string::npos) values["digest"] = image.substr(at + 1);
  const size_t slash = name.rfind('/'), colon = name.rfind(':');
  if (colon != std::string::npos && (slash == std::string::npos || colon > slash)) {
    values["tag"] = name.substr(colon + 1);
    name.resize(colon);
  }
  values["repository"] = name;
  return values;
}

Result<std::string> inputText(const std::filesystem::path& file) {
  if (file.empty()) return std::string();
  return readFile(file, kMostInput);
}

}  // namespace

bool needsGpus(const KubeOptions& o, const Plan& plan) {
  return plan.backend == "cuda" && o.scenario.empty();
}

std::string kindOf(const KubeOptions& o, const Plan& plan) {
  if (!o.kind.empty()) return o.kind;
  const bool together = std::any_of(plan.stages.begin(), plan.stages.end(),
                                    [](const Stage& stage) { return stage.scope == Scope::kCluster; });
  return together ? "cluster" : "node";
}

Result<std::vector<std::string>> askedNodes(const KubeOptions& o, bool gpus, const kube::Nodes& known) {
  std::vector<std::string> names;
  if (o.nodes == "all") {
    for (const auto& [name, node] : known)
      if (gpus ? node.has(o.gpuResource) : !node.controlPlane()) names.push_back(name);
    if (names.empty())
      return Error{
          ErrorCode::kUsage,
          fmt::format("no node has {}; is its device plugin running? See `muster k8s verify`", o.gpuResource),
          "--nodes all"};
  } else {
    MUSTER_TRY(names, slurm::nodeNames(o.nodes).context("--nodes"));
  }
  for (const std::string& name : names) {
    if (!isPlainName(name))
      return Error{ErrorCode::kUsage,
                   fmt::format("a node name of more than 64 characters: {}", printable(name, 100)),
                   "--nodes"};
    if (!known.empty() && known.count(name) == 0)
      return Error{ErrorCode::kUsage, fmt::format("Kubernetes has no node {}; see kubectl get nodes", name),
                   "--nodes"};
  }
  return names;
}

std::string numbersText(const NodesByGpus& counts) {
  std::vector<std::string> parts;
  for (const auto& [count, names] : counts)
    parts.push_back(fmt::format("{} on {}", count, slurm::shortList(names)));
  return join(parts, ", ");
}

Result<int> podGpus(const KubeOptions& o, const Plan& plan, const std::vector<std::string>& nodes,
                    const kube::Nodes& known) {
  if (o.gpus >= 0) return o.gpus;
  if (!needsGpus(o, plan)) return 0;
  NodesByGpus counts;
  for (const std::string& name : nodes)
    if (const auto node = known.find(name); node != known.end())
      counts[node->second.count(o.gpuResource)].push_back(name);
  counts.erase(0);  // such a node runs no pod
  if (counts.size() == 1) return static_cast<int>(counts.begin()->first);
  return Error{ErrorCode::kUsage,
               counts.size() > 1
                   ? fmt::format("different numbers of GPUs: {}; {}", numbersText(counts), kOneNumber)
                   : fmt::format("none of these nodes offers {}; is its device plugin running? See `muster "
                                 "k8s verify`, or set --gpus",
                                 o.gpuResource),
               "--nodes"};
}

Result<Json> commonValues(const KubeOptions& o, const RunSetup& setup, const std::string& kind, int gpus) {
  if (!o.skuFolders.empty() || !o.pluginFolders.empty())
    return Error{
        ErrorCode::kUsage,
        "--skus and --plugins name folders of this machine, which pods do not see; put them into the image",
        ""};
  if (setup.plan.text.size() > kMostInput)
    return Error{ErrorCode::kUsage, "the plan is larger than a ConfigMap can be; put it into the image",
                 o.plan.string()};
  Json values;
  values["kind"] = kind;
  values["plan"] = {{"text", setup.plan.text},
                    {"name", inputName(o.plan, "plan" + o.plan.extension().string())}};
  if (!o.scenario.empty()) {
    MUSTER_TRY(values["scenario"], frozenToml(o.scenario));
  }
  MUSTER_TRY(values["waivers"], inputText(o.waivers));
  values["run"]["options"] = runOptions(o);
  values["gpus"] = gpus;
  values["gpuResource"] = o.gpuResource;
  if (!o.image.empty()) values["image"] = imageValues(o.image);
  if (!o.controller.empty()) values["controller"] = o.controller;
  int minutes = minutesOf(setup.plan);
  if (!o.time.empty()) {
    MUSTER_TRY(minutes, minutesFrom(o.time, "--time"));
  }
  values["deadlineSeconds"] = minutes * 60;
  return values;
}

Result<std::string> manifestsOf(const Tree& tree, const std::string& release, const std::string& space,
                                const std::vector<std::string>& valueFiles, const Json& values) {
  return kube::renderChart((tree.templates / "helm" / "muster").string(), release, space, valueFiles, values);
}

}  // namespace muster
