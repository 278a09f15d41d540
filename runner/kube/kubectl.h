// SPDX-License-Identifier: Apache-2.0
// Kubernetes through kubectl, a complete client of its API: its JSON is read, its text is only quoted in
// errors.
#pragma once

#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster::kube {

/// Which cluster and namespace; empty: as the kubeconfig says.
struct Cluster {
  std::string context;
  std::string space;
};

/// What `kubectl WORDS -o json` prints. kUsage with kubectl's complaint if it fails, kNotFound without
/// kubectl.
Result<Json> ask(const Cluster& cluster, std::vector<std::string> words);

/// `kubectl WORDS` with standard input; what it prints is not looked at.
Status act(const Cluster& cluster, std::vector<std::string> words, std::string input = {});

/// The log of the container that ran the plan.
Result<std::string> podLog(const Cluster& cluster, const std::string& pod);

/// The manifests that `helm template` makes of a chart: `values` is JSON, and comes after the files.
Result<std::string> renderChart(const std::string& chart, const std::string& release,
                                const std::string& space, const std::vector<std::string>& valueFiles,
                                const Json& values);

}  // namespace muster::kube
