// SPDX-License-Identifier: Apache-2.0
// Parsed options of `muster k8s`, and its subcommands.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runner/app/submit/submit_input.h"
#include "runner/core/result.h"
#include "runner/kube/collect.h"
#include "runner/kube/kubectl.h"
#include "runner/kube/run_store.h"

namespace CLI {
class App;
}

namespace muster {

/// SubmitInput is what `submit` and `render` run.
struct KubeOptions : SubmitInput {
  kube::Cluster cluster;
  std::string nodes;  ///< a host list, or "all"
  std::string kind;   ///< of the chart; empty: as the plan's stages say
  std::string image;
  std::vector<std::string> valueFiles;
  std::string controller;  ///< of cluster runs; empty: as the values say
  std::string gpuResource = "nvidia.com/gpu";
  std::string rdmaResource;
  int gpus = -1;     ///< -1: what Kubernetes says of the nodes
  std::string time;  ///< a duration; empty: what the plan's timeouts come to
  bool wait = false;
  // the others
  std::filesystem::path run;
  bool rejectedToo = false;
  bool apply = false;
  bool dryRun = false;
  std::string olderThan;
  std::string nodeName;
  std::string taint = "muster.dev/preflight";
};

/// Adds `k8s` with its subcommands to the command line.
CLI::App* addKube(CLI::App& app, KubeOptions& options);
/// Runs the subcommand that was given.
Result<int> kubeCommand(const CLI::App& app, KubeOptions& options);

/// Prints the manifests.
Result<int> kubeRender(KubeOptions& options);
Result<int> kubeVerify(KubeOptions& options);
Result<int> kubeSubmit(KubeOptions& options);
Result<int> kubeStatus(const KubeOptions& options);
Result<int> kubeResume(const KubeOptions& options);
/// collectResults() with what shows that a record is one of this run's Muster, whatever the node's state.
Result<std::map<std::string, kube::NodeResult>> resultsOf(const kube::RunStore& run,
                                                          const kube::Snapshot& seen);
/// Takes in all records and writes the fleet report; its exit code.
Result<int> kubeCollect(const kube::RunStore& run);
/// Follows the run until nothing of it waits or runs, then collects.
Result<int> kubeWait(const kube::RunStore& run);
Result<int> kubeCleanup(const KubeOptions& options);
/// Removes the preflight taint of a node whose record accepts it.
Result<int> kubeRelease(const KubeOptions& options);

}  // namespace muster
