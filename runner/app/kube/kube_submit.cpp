// SPDX-License-Identifier: Apache-2.0
// `muster k8s render, submit, resume`: from a plan and nodes to objects of Kubernetes.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "runner/app/kube/kube_chart.h"
#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/kube/collect.h"
#include "runner/record/record_mac.h"
#include "runner/slurm/node_names.h"
#include "runner/system/secret.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr const char* kWaivers = "waivers.toml";
constexpr const char* kTopology = "topology.conf";

/// What `muster fleet` needs besides records, nodes and plan.
std::vector<std::string> fleetOptions(const KubeOptions& o, const std::string& id, const fs::path& out) {
  std::vector<std::string> words = {"--fleet-id", id};
  if (!o.waivers.empty()) words.insert(words.end(), {"--waivers", (out / "inputs" / kWaivers).string()});
  if (!o.topology.empty()) words.insert(words.end(), {"--topology", (out / "inputs" / kTopology).string()});
  for (const std::string& sku : o.nodeSkus) words.insert(words.end(), {"--node-sku", sku});
  if (o.sameMachine) words.push_back("--same-machine");
  if (o.rejectOutliers) words.push_back("--reject-outliers");
  return words;
}

Status writeInputs(const kube::RunStore& run, const KubeOptions& o, const Plan& plan) {
  const fs::path inputs = run.folder() / "inputs";
  MUSTER_CHECK_OK(writeFileAtomically(inputs / run.submission().planFile, plan.text));
  std::vector<std::pair<fs::path, std::string>> copies = {{o.waivers, kWaivers}, {o.topology, kTopology}};
  for (size_t i = 0; i < o.valueFiles.size(); ++i)
    copies.emplace_back(o.valueFiles[i], run.submission().valueFiles[i]);
  for (const auto& [from, name] : copies) {
    if (from.empty()) continue;
    MUSTER_TRY(const std::string text, readFile(from));
    MUSTER_CHECK_OK(writeFileAtomically(inputs / name, text));
  }
  MUSTER_TRY(const std::string key, randomSecret());
  MUSTER_TRY(const Fd file, openOwnFile(run.runKey(), O_WRONLY | O_TRUNC, 0600));
  return appendAndSync(file.get(), key + "\n", run.runKey());
}

/// The values of one round that may be kept.
Json roundValues(const kube::RunStore& run, Json values, const std::vector<std::string>& nodes, int round) {
  for (const char* secret : {"recordKeys", "token"}) values.erase(secret);  // older versions kept them
  values["nodes"] = nodes;
  values["nodeCount"] = nodes.size();
  values["run"]["id"] = run.submission().id;
  values["run"]["round"] = round;
  values["run"]["nodes"] = run.submission().nodes;
  return values;
}

/// With those of its Secrets: the nodes' keys, and a token if they run together.
Result<Json> withSecrets(const kube::RunStore& run, Json values) {
  MUSTER_TRY(const std::string key, readKey(run.runKey()));
  values["recordKeys"] = Json::object();
  for (const Json& node : values["nodes"])
    values["recordKeys"][node.get<std::string>()] = nodeKeyOf(key, node.get<std::string>());
  if (run.submission().together) {
    MUSTER_TRY(const std::string token, randomSecret());
    values["token"] = {{"value", token}};
  }
  return values;
}

/// Creates the objects of a round: all, or none.
Status createRound(const kube::RunStore& run, const Json& values, int round) {
  const kube::Submission& s = run.submission();
  std::vector<std::string> files;
  for (const std::string& name : s.valueFiles) files.push_back((run.folder() / "inputs" / name).string());
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Json full, withSecrets(run, values));
  MUSTER_TRY(const std::string manifests,
             manifestsOf(tree, fmt::format("{}-r{}", s.release, round), s.cluster.space, files, full));
  MUSTER_CHECK_OK(run.keepValues(round, values));
  Status created = kube::act(s.cluster, {"create", "--filename", "-"}, manifests);
  if (created.ok()) return {};
  const Status removed =
      kube::act(s.cluster, {"delete", "--ignore-not-found", "--wait=false", "--filename", "-"}, manifests);
  run.dropRound(round);
  Error error = std::move(created).error();
  error.message += removed.ok() ? "; what had been created of this round was removed again"
                                : "; what had been created could not be removed: " + removed.error().message;
  return error;
}

/// Keeps what was asked for, and creates the first round.
Status beginRun(const kube::RunStore& run, const KubeOptions& o, const Plan& plan, const Json& common,
                const std::vector<std::string>& nodes) {
  MUSTER_TRY(const Fd lock, run.lock());
  MUSTER_CHECK_OK(writeInputs(run, o, plan));
  return createRound(run, roundValues(run, common, nodes, 1), 1);
}

/// Splits nodes into those that can run now and those that cannot, which are listed.
std::vector<std::string> availableOf(const std::vector<std::string>& nodes, const kube::Nodes& known,
                                     const kube::Request& gpus) {
  std::vector<std::string> available;
  for (const std::string& name : nodes) {
    const std::string why = kube::unavailable(known, name, gpus);
    if (why.empty())
      available.push_back(name);
    else
      printText("missing: {} ({})\n", name, why);
  }
  return available;
}

kube::Submission describe(const KubeOptions& o, const Plan& plan) {
  kube::Submission s;
  s.id = newRunId(plan.name);
  s.release = "muster-" + lowerCase(s.id.substr(s.id.size() - 20));
  s.created = systemClock().wallUnix();
  s.cluster = o.cluster;
  s.planName = plan.name;
  s.planFile = inputName(o.plan, "plan" + o.plan.extension().string());
  s.simulated = !o.scenario.empty();
  for (size_t i = 0; i < o.valueFiles.size(); ++i)
    s.valueFiles.push_back(fmt::format("values-{}.yaml", i + 1));
  return s;
}

Status checkKind(const KubeOptions& o, const std::string& kind) {
  if (kind == "cluster" && !o.scenario.empty())
    return Error{
        ErrorCode::kUsage,
        "stages of scope cluster cannot be simulated in pods; simulate them on this machine with `muster "
        "run --simulate SCENARIO --nodes N`",
        "--simulate"};
  return {};
}

}  // namespace

Result<int> kubeRender(KubeOptions& o) {
  MUSTER_TRY(const RunSetup setup, checkedSetup(o));
  const std::string kind = kindOf(o, setup.plan);
  MUSTER_CHECK_OK(checkKind(o, kind));
  if (kind == "preflight" && o.cluster.space.empty())
    return Error{ErrorCode::kUsage, "set --namespace: the manifests of preflight name it",
                 "--kind preflight"};
  kube::Nodes known;
  if (o.nodes == "all") {
    MUSTER_TRY(known, kube::readNodes(o.cluster));
  }
  std::vector<std::string> nodes;
  if (!o.nodes.empty()) {
    MUSTER_TRY(nodes, askedNodes(o, needsGpus(o, setup.plan), known));
  }
  // Without a cluster to ask, the chart's own number of GPUs holds.
  KubeOptions own = o;
  if (own.gpus < 0 && known.empty() && needsGpus(o, setup.plan)) own.gpus = 8;
  MUSTER_TRY(const int gpus, podGpus(own, setup.plan, nodes, known));
  MUSTER_TRY(Json values, commonValues(o, setup, kind, gpus));
  if (!nodes.empty()) values["nodes"] = nodes;
  MUSTER_TRY(const std::string text,
             manifestsOf(setup.tree, "muster-" + lowerCase(plainNameOf(setup.plan.name)), o.cluster.space,
                         o.valueFiles, values));
  printLines(text);
  return kExitAccepted;
}

Result<int> kubeSubmit(KubeOptions& o) {
  MUSTER_TRY(const RunSetup setup, checkedSetup(o));
  const std::string kind = kindOf(o, setup.plan);
  MUSTER_CHECK_OK(checkKind(o, kind));
  MUSTER_TRY(const kube::Nodes known, kube::readNodes(o.cluster));
  kube::Submission submission = describe(o, setup.plan);
  submission.together = kind == "cluster";
  MUSTER_TRY(submission.nodes, askedNodes(o, needsGpus(o, setup.plan), known));
  if (!o.scenario.empty()) MUSTER_CHECK_OK(checkScenario(o, setup, submission.nodes.size()));
  MUSTER_TRY(const int gpus, podGpus(o, setup.plan, submission.nodes, known));
  submission.gpus = {o.gpuResource, gpus};
  MUSTER_TRY(const Json common, commonValues(o, setup, kind, gpus));
  const std::vector<std::string> available = availableOf(submission.nodes, known, submission.gpus);
  if (available.empty()) return Error{ErrorCode::kUsage, "none of these nodes can run a pod now", "--nodes"};
  const fs::path out =
      fs::absolute(o.out.empty() ? fs::path("muster-k8s-" + submission.id) : o.out).lexically_normal();
  submission.fleetOptions = fleetOptions(o, submission.id, out);
  MUSTER_TRY(const kube::RunStore run, kube::RunStore::create(out, submission));
  if (const Status begun = beginRun(run, o, setup.plan, common, available); !begun.ok()) {
    std::error_code error;  // nothing was begun, so another try may have the folder
    fs::remove_all(run.folder(), error);
    return begun.error();
  }
  printText("run {}: {} of {} nodes submitted\n", out.string(), available.size(), submission.nodes.size());
  printText("follow it with: muster k8s status {}\n", shellQuote(out.string()));
  std::fflush(stdout);
  return o.wait ? kubeWait(run) : Result<int>(kExitAccepted);
}

Result<int> kubeResume(const KubeOptions& o) {
  MUSTER_TRY(const kube::RunStore run, kube::RunStore::open(o.run));
  bool blocked = false;  // none of the nodes that are to run again can run now
  {
    MUSTER_TRY(const Fd lock, run.lock());
    MUSTER_TRY(const kube::Snapshot seen, kube::look(run));
    if (kube::anyLive(seen))
      return Error{
          ErrorCode::kUsage,
          "pods of this run are still pending or running; see `muster k8s status`, and resume when they "
          "have ended",
          run.folder().string()};
    MUSTER_TRY(const auto results, resultsOf(run, seen));
    std::vector<std::string> again, rejected;
    for (const NodeJob& node : kube::progressOf(run.submission(), results, seen)) {
      const auto result = results.find(node.node);
      const bool failed = result != results.end() && result->second.exitCode == kExitRejected;
      if (failed || node.state == NodeState::kRejected) rejected.push_back(node.node);
      if (!runsAgain(node.state, o.rejectedToo)) continue;
      if (failed && !o.rejectedToo)
        printText("{}: {}; it may have been rejected, so only --rejected retests it\n", node.node,
                  node.detail);
      else
        again.push_back(node.node);
    }
    if (run.submission().together && !rejected.empty() && !o.rejectedToo) {
      again.clear();
      printText("all nodes ran together, and something failed on {}; after a repair, use --rejected\n",
                slurm::shortList(rejected));
    }
    // Stages of scope cluster are of all nodes: where one can run that has no result, all run them again.
    const kube::Submission& s = run.submission();
    const bool whole = s.together && std::any_of(again.begin(), again.end(), [&](const std::string& node) {
                         return kube::unavailable(seen.nodes, node, s.gpus).empty();
                       });
    if (whole) again = s.nodes;
    blocked = !again.empty();
    again = availableOf(again, seen.nodes, s.gpus);
    blocked = blocked && again.empty();
    if (whole && again.size() < s.nodes.size())
      printText("the others run together without the missing ones; resume again when those are back\n");
    const int round = run.lastRound() + 1;
    if (!again.empty()) {
      MUSTER_TRY(const Json before, run.values(round - 1));
      // Only then: without a new round, the verdicts of the last one hold.
      MUSTER_CHECK_OK(createRound(run, roundValues(run, before, again, round), round));
      for (const std::string& node : again) MUSTER_CHECK_OK(run.setAside(node, round - 1));
    }
    printText("run {}: retesting {} nodes{}{}\n", run.folder().string(), again.size(),
              again.empty() ? "" : ": ", slurm::shortList(again));
    std::fflush(stdout);
  }
  if (o.wait) return kubeWait(run);
  return blocked ? kExitIncomplete : kExitAccepted;
}

}  // namespace muster
