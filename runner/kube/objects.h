// SPDX-License-Identifier: Apache-2.0
// Nodes, pods and jobs as far as a run needs them, from the API's JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/kube/kubectl.h"

namespace muster::kube {

constexpr const char* kRunLabel = "muster.dev/run";
constexpr const char* kRoundLabel = "muster.dev/round";
constexpr const char* kNodeAnnotation = "muster.dev/node";

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
};

struct NodeInfo {
  std::string name;
  bool ready = false;
  bool cordoned = false;
  std::vector<Taint> taints;
  std::map<std::string, std::string> labels;
  std::map<std::string, int64_t> allocatable;  ///< whole numbers: GPUs, RDMA devices
  std::map<std::string, int64_t> capacity;     ///< likewise, with those that are unhealthy

  /// How many of a resource pods can have; 0 also where its device plugin or all devices are dead.
  [[nodiscard]] int64_t count(const std::string& resource) const;
  /// Whether it is a node with this resource, though it may offer none of it now.
  [[nodiscard]] bool has(const std::string& resource) const;
  /// Why it can run nothing now: "NotReady", "cordoned"; empty if it can.
  [[nodiscard]] std::string unavailable() const;
  [[nodiscard]] bool controlPlane() const;
};
using Nodes = std::map<std::string, NodeInfo>;

/// What a pod requests.
struct Request {
  std::string resource;  ///< empty: nothing
  int64_t count = 0;
};
/// Why the node of this name can run no such pod now; empty if it can.
std::string unavailable(const Nodes& known, const std::string& name, const Request& request);

struct PodInfo {
  std::string name;
  std::string node;  ///< empty: not scheduled
  std::string job;
  std::string phase;  ///< Pending, Running, Succeeded, Failed, Unknown
  std::string why;    ///< reason and message of its state, if any
  int round = 0;
  int exitCode = -1;  ///< of the container that runs the plan; -1: not ended, or not known

  [[nodiscard]] bool ended() const { return phase == "Succeeded" || phase == "Failed"; }
};

struct JobInfo {
  std::string name;
  std::string node;       ///< it is pinned to this one; empty: to none
  bool ofJobSet = false;  ///< it says that it belongs to a JobSet
  std::string run;        ///< empty: made without `muster k8s`
  std::string failure;    ///< reason and message, if it failed
  int round = 0;
  bool ended = false;
  double changed = 0;  ///< seconds since 1970: its end, else its creation
};

/// From the `items` of a list; entries that lack a name are left out.
Nodes nodesFrom(const Json& list);
std::vector<PodInfo> podsFrom(const Json& list);
std::vector<JobInfo> jobsFrom(const Json& list);

/// ask() for objects; an Error that names the command where the answer is no list: it is not that of an empty
/// cluster.
Result<Json> askList(const Cluster& cluster, const std::vector<std::string>& words);
Result<Nodes> readNodes(const Cluster& cluster);
/// Those of one run.
Result<std::vector<PodInfo>> readPods(const Cluster& cluster, const std::string& run);
Result<std::vector<JobInfo>> readJobs(const Cluster& cluster, const std::string& run);

/// The JSON patches that take every taint with this key away, the last first; each tests that the taint is
/// still there, so a change by somebody else makes it fail instead of removing another taint.
std::vector<Json> taintRemovals(const Json& node, const std::string& key);

/// The text at a JSON pointer; empty where there is none.
std::string textAt(const Json& object, const std::string& pointer);
/// The value at a JSON pointer, or null.
const Json& valueAt(const Json& object, const std::string& pointer);
/// Seconds since 1970 of "2026-11-25T12:00:00Z"; 0 for other texts.
double timeOf(const std::string& text);

}  // namespace muster::kube
