// SPDX-License-Identifier: Apache-2.0
// From options to values of the Helm chart, the one source of manifests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/app/kube/kube_options.h"
#include "runner/core/json.h"
#include "runner/kube/objects.h"

namespace muster {

/// The values that are the same in every round: plan, scenario, waivers, options, image, GPUs, limits.
Result<Json> commonValues(const KubeOptions& options, const RunSetup& setup, const std::string& kind,
                          int gpus);

/// "node" or "cluster", by the plan's stages, unless --kind says otherwise.
std::string kindOf(const KubeOptions& options, const Plan& plan);

/// Names of nodes by the number of their GPUs.
using NodesByGpus = std::map<int64_t, std::vector<std::string>>;
std::string numbersText(const NodesByGpus& counts);  ///< "7 on n3, 8 on n[0-2]"

/// What to do where they differ.
inline constexpr const char* kOneNumber =
    "set --gpus to what a healthy node has: nodes that offer fewer then count as missing; "
    "submit kinds of nodes separately";

/// The GPUs that a pod requests: --gpus, else what Kubernetes says of the nodes if all that offer any agree.
Result<int> podGpus(const KubeOptions& options, const Plan& plan, const std::vector<std::string>& nodes,
                    const kube::Nodes& known);

/// Whether pods measure real GPUs.
bool needsGpus(const KubeOptions& options, const Plan& plan);

/// The nodes that --nodes stands for; "all": those with GPUs, also where they offer none now, or without need
/// of GPUs all but the control plane.
Result<std::vector<std::string>> askedNodes(const KubeOptions& options, bool gpus, const kube::Nodes& known);

/// The manifests of the chart in the distribution.
Result<std::string> manifestsOf(const Tree& tree, const std::string& release, const std::string& space,
                                const std::vector<std::string>& valueFiles, const Json& values);

}  // namespace muster
