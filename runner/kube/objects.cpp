// SPDX-License-Identifier: Apache-2.0
// Reads objects of the API. What is missing or of another type is as if it were not set.
#include "runner/kube/objects.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <charconv>

#include "runner/core/text.h"

namespace muster::kube {
namespace {

const Json& itemsOf(const Json& list) {
  static const Json kNone = Json::array();
  const Json& items = valueAt(list, "/items");
  return items.is_array() ? items : kNone;
}

bool flagAt(const Json& object, const std::string& pointer) {
  const Json& value = valueAt(object, pointer);
  return value.is_boolean() && value.get<bool>();
}

/// The condition of this type whose status is True; null where there is none.
const Json& condition(const Json& object, const std::string& type) {
  static const Json kNone;
  for (const Json& one : valueAt(object, "/status/conditions"))
    if (textAt(one, "/type") == type && textAt(one, "/status") == "True") return one;
  return kNone;
}

std::string reasonOf(const Json& state) {
  const std::string reason = textAt(state, "/reason"), message = textAt(state, "/message");
  return reason.empty() || message.empty() ? reason + message : reason + ": " + message;
}

/// A pointer to a label or annotation.
std::string meta(const char* kind, std::string name) {
  for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 2))
    name.replace(at, 1, "~1");
  return fmt::format("/metadata/{}/{}", kind, name);
}

int wholeNumber(const std::string& text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() ? value : -1;
}

std::map<std::string, int64_t> amounts(const Json& resources) {
  std::map<std::string, int64_t> counts;
  if (!resources.is_object()) return counts;
  for (const auto& [name, amount] : resources.items()) {
    const int count = wholeNumber(amount.is_string() ? amount.get<std::string>() : amount.dump());
    if (count >= 0) counts[name] = count;
  }
  return counts;
}

NodeInfo nodeFrom(const Json& json) {
  NodeInfo node;
  node.name = textAt(json, "/metadata/name");
  node.ready = !condition(json, "Ready").is_null();
  node.cordoned = flagAt(json, "/spec/unschedulable");
  for (const Json& taint : valueAt(json, "/spec/taints"))
    node.taints.push_back({textAt(taint, "/key"), textAt(taint, "/value"), textAt(taint, "/effect")});
  if (const Json& labels = valueAt(json, "/metadata/labels"); labels.is_object())
    for (const auto& [name, value] : labels.items())
      if (value.is_string()) node.labels[name] = value.get<std::string>();
  node.allocatable = amounts(valueAt(json, "/status/allocatable"));
  node.capacity = amounts(valueAt(json, "/status/capacity"));
  return node;
}

/// How the container that runs the plan stands: its exit code, or what keeps it from starting.
void readContainer(const Json& status, PodInfo& pod) {
  for (const Json& container : valueAt(status, "/containerStatuses")) {
    if (textAt(container, "/name") != "muster") continue;
    const Json& ended = valueAt(container, "/state/terminated");
    if (const Json& code = valueAt(ended, "/exitCode"); code.is_number_integer())
      pod.exitCode = static_cast<int>(std::min<uint64_t>(code.get<uint64_t>(), 255));
    const Json& waiting = valueAt(container, "/state/waiting");
    if (pod.why.empty()) pod.why = waiting.is_null() ? textAt(ended, "/reason") : reasonOf(waiting);
  }
}

PodInfo podFrom(const Json& json) {
  PodInfo pod;
  pod.name = textAt(json, "/metadata/name");
  pod.node = textAt(json, "/spec/nodeName");
  pod.job = textAt(json, meta("labels", "batch.kubernetes.io/job-name"));
  if (pod.job.empty()) pod.job = textAt(json, meta("labels", "job-name"));
  pod.round = wholeNumber(textAt(json, meta("labels", kRoundLabel)));
  const Json& status = valueAt(json, "/status");
  pod.phase = textAt(status, "/phase");
  pod.why = reasonOf(status);
  readContainer(status, pod);
  for (const Json& one : valueAt(status, "/conditions"))
    if (pod.why.empty() && textAt(one, "/type") == "PodScheduled" && textAt(one, "/status") == "False")
      pod.why = reasonOf(one);
  return pod;
}

JobInfo jobFrom(const Json& json) {
  JobInfo job;
  job.name = textAt(json, "/metadata/name");
  job.node = textAt(json, meta("annotations", kNodeAnnotation));
  job.run = textAt(json, meta("labels", kRunLabel));
  for (const Json& owner : valueAt(json, "/metadata/ownerReferences"))
    job.ofJobSet = job.ofJobSet || textAt(owner, "/kind") == "JobSet";
  job.round = wholeNumber(textAt(json, meta("labels", kRoundLabel)));
  job.changed = timeOf(textAt(json, "/metadata/creationTimestamp"));
  for (const char* type : {"Complete", "Failed"}) {
    const Json& end = condition(json, type);
    if (end.is_null()) continue;
    job.ended = true;
    if (type == std::string_view("Failed")) job.failure = reasonOf(end);
    job.changed = std::max(job.changed, timeOf(textAt(end, "/lastTransitionTime")));
  }
  return job;
}

std::string selector(const std::string& run) {
  return fmt::format("--selector={}={}", kRunLabel, run);
}

}  // namespace

const Json& valueAt(const Json& object, const std::string& pointer) {
  static const Json kNone;
  const Json::json_pointer at(pointer);
  return object.is_structured() && object.contains(at) ? object.at(at) : kNone;
}

std::string textAt(const Json& object, const std::string& pointer) {
  const Json& value = valueAt(object, pointer);
  return value.is_string() ? value.get<std::string>() : std::string();
}

double timeOf(const std::string& text) {
  struct tm parts {};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return end != nullptr && *end == '\0' ? static_cast<double>(timegm(&parts)) : 0;
}

int64_t NodeInfo::count(const std::string& resource) const {
  const auto found = allocatable.find(resource);
  return found == allocatable.end() ? 0 : found->second;
}

bool NodeInfo::has(const std::string& resource) const {
  if (allocatable.count(resource) > 0 || capacity.count(resource) > 0) return true;
  const auto label = labels.find("nvidia.com/gpu.present");  // of GPU feature discovery
  return resource == "nvidia.com/gpu" && label != labels.end() && label->second == "true";
}

std::string NodeInfo::unavailable() const {
  if (cordoned) return "cordoned";
  return ready ? "" : "NotReady";
}

std::string unavailable(const Nodes& known, const std::string& name, const Request& request) {
  const auto found = known.find(name);
  if (found == known.end()) return "Kubernetes has no such node";
  std::string why = found->second.unavailable();
  const int64_t offered = found->second.count(request.resource);
  if (why.empty() && offered < request.count)
    why = fmt::format("offers {} {}, a pod requests {}", offered, request.resource, request.count);
  return why;
}

bool NodeInfo::controlPlane() const {
  return labels.count("node-role.kubernetes.io/control-plane") > 0;
}

Nodes nodesFrom(const Json& list) {
  Nodes nodes;
  for (const Json& item : itemsOf(list)) {
    NodeInfo node = nodeFrom(item);
    if (!node.name.empty()) nodes[node.name] = std::move(node);
  }
  return nodes;
}

std::vector<PodInfo> podsFrom(const Json& list) {
  std::vector<PodInfo> pods;
  for (const Json& item : itemsOf(list)) {
    pods.push_back(podFrom(item));
    if (pods.back().name.empty()) pods.pop_back();
  }
  return pods;
}

std::vector<JobInfo> jobsFrom(const Json& list) {
  std::vector<JobInfo> jobs;
  for (const Json& item : itemsOf(list)) {
    jobs.push_back(jobFrom(item));
    if (jobs.back().name.empty()) jobs.pop_back();
  }
  return jobs;
}

Result<Json> askList(const Cluster& cluster, const std::vector<std::string>& words) {
  MUSTER_TRY(Json list, ask(cluster, words));
  if (valueAt(list, "/items").is_array()) return list;
  const std::string said = textAt(list, "/message");
  return Error{ErrorCode::kProtocol,
               fmt::format("answered {}; expected a list of objects: run it again, by hand if this stays",
                           printable(said.empty() ? dumpJson(list) : said, 200)),
               "kubectl " + join(words, " ")};
}

Result<Nodes> readNodes(const Cluster& cluster) {
  MUSTER_TRY(const Json list, askList(cluster, {"get", "nodes"}));
  return nodesFrom(list);
}

Result<std::vector<PodInfo>> readPods(const Cluster& cluster, const std::string& run) {
  MUSTER_TRY(const Json list, askList(cluster, {"get", "pods", selector(run)}));
  return podsFrom(list);
}

Result<std::vector<JobInfo>> readJobs(const Cluster& cluster, const std::string& run) {
  MUSTER_TRY(const Json list, askList(cluster, {"get", "jobs", selector(run)}));
  return jobsFrom(list);
}

std::vector<Json> taintRemovals(const Json& node, const std::string& key) {
  std::vector<Json> patches;
  const Json& taints = valueAt(node, "/spec/taints");
  for (size_t i = taints.size(); taints.is_array() && i-- > 0;) {
    if (textAt(taints[i], "/key") != key) continue;
    const std::string path = fmt::format("/spec/taints/{}", i);
    patches.push_back(Json::array(
        {{{"op", "test"}, {"path", path}, {"value", taints[i]}}, {{"op", "remove"}, {"path", path}}}));
  }
  return patches;
}

}  // namespace muster::kube
