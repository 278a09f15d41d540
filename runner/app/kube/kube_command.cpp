// SPDX-License-Identifier: Apache-2.0
// `muster k8s status, wait, collect`: what became of a run.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "reports/fleet/read/record_stream.h"
#include "runner/app/fleet/fleet_options.h"
#include "runner/app/kube/kube_options.h"
#include "runner/app/node/outputs.h"
#include "runner/app/process/interrupt.h"
#include "runner/core/clock.h"
#include "runner/core/json.h"
#include "runner/core/print.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/kube/collect.h"
#include "runner/record/record_mac.h"
#include "runner/slurm/node_names.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr unsigned kLook = 200000;  // microseconds between looks at interrupts
constexpr double kAsk = 5;          // seconds between questions to the API
constexpr double kPatience = 900;   // seconds that the API may be unreachable

Result<std::vector<NodeJob>> progressNow(const kube::RunStore& run, const kube::Snapshot& seen) {
  MUSTER_TRY(const auto results, resultsOf(run, seen));
  return kube::progressOf(run.submission(), results, seen);
}

void show(const std::vector<NodeJob>& nodes) {
  for (const NodeJob& node : nodes)
    printText("{:<20} {:<10} {}\n", node.node, nodeStateName(node.state), node.detail);
  printText("{} nodes: {}\n", nodes.size(), countText(nodes));
}

/// The arguments of `muster fleet` for a run.
std::vector<std::string> fleetArguments(const kube::RunStore& run) {
  const auto path = [&](const char* name) { return (run.folder() / name).string(); };
  std::vector<std::string> words = {path("records"),
                                    "--expect",
                                    path("expect.txt"),
                                    "--out",
                                    path("fleet"),
                                    "--record-key",
                                    run.runKey().string(),
                                    "--plan",
                                    (run.folder() / "inputs" / run.submission().planFile).string()};
  const auto& more = run.submission().fleetOptions;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A node's pages, which its pod's log does not bring. A record that cannot be read or was not written with
/// the node's key gets none; the fleet says why.
Status writePages(const fs::path& file, const std::string& nodeKey, const Tree& tree) {
  const fs::path folder = file.parent_path();
  std::error_code error;
  if (!fs::exists(file, error) || fs::exists(folder / "report.html", error)) return {};
  const Result<Record> record = readRecord(file);
  if (!record.ok()) return {};
  const std::string text = recordText(*record);
  return checkMac(text, nodeKey).ok() ? writeReports(*record, sha256Hex(text), folder, tree.templates)
                                      : Status();
}

Status writeAllPages(const kube::RunStore& run) {
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const std::string key, readKey(run.runKey()));
  const std::vector<std::string>& nodes = run.submission().nodes;
  std::vector<Status> written(nodes.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < nodes.size(); i = next++)
      written[i] = writePages(run.record(nodes[i]), nodeKeyOf(key, nodes[i]), tree);
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < fleet::readerThreads(); ++i) helpers.emplace_back(work);
    work();
  }
  for (Status& status : written) MUSTER_CHECK_OK(std::move(status).context("writing a node's report"));
  return {};
}

}  // namespace

Result<std::map<std::string, kube::NodeResult>> resultsOf(const kube::RunStore& run,
                                                          const kube::Snapshot& seen) {
  MUSTER_TRY(const std::string key, readKey(run.runKey()));
  return kube::collectResults(
      run, seen, [&](const std::string& node, const std::string& text, const Json& record) -> Status {
        MUSTER_CHECK_OK(checkMac(text, nodeKeyOf(key, node)));
        int schema = 0;
        std::string name;
        JsonReader reader(record, "the record");
        reader.read("schema", schema);
        if (const Json* of = reader.object("run")) JsonReader(*of, "the record's run").read("node", name);
        MUSTER_CHECK_OK(reader.status());
        if (schema != kRecordSchema)
          return Error{ErrorCode::kProtocol,
                       fmt::format("the record has schema {}, and this Muster reads {}: the image holds "
                                   "another version",
                                   schema, kRecordSchema),
                       ""};
        if (name == node) return {};
        return Error{ErrorCode::kProtocol, fmt::format("the record is of {}", printable(name, 80)), ""};
      });
}

Result<int> kubeStatus(const KubeOptions& o) {
  MUSTER_TRY(const kube::RunStore run, kube::RunStore::open(o.run));
  MUSTER_TRY(const Fd lock, run.lock());
  MUSTER_TRY(const kube::Snapshot seen, kube::look(run));
  MUSTER_TRY(const auto nodes, progressNow(run, seen));
  show(nodes);
  return kExitAccepted;
}

Result<int> kubeCollect(const kube::RunStore& run) {
  MUSTER_TRY(const Fd lock, run.lock());
  MUSTER_TRY(const kube::Snapshot seen, kube::look(run));
  MUSTER_TRY(const auto nodes, progressNow(run, seen));
  show(nodes);
  std::vector<std::string> lost;
  for (const NodeJob& node : nodes)
    if (node.state == NodeState::kLost) lost.push_back(node.node);
  if (!lost.empty())
    printText("lost the results of {} of {} nodes ({}); retest them with: muster k8s resume {}\n",
              lost.size(), nodes.size(), slurm::shortList(lost), shellQuote(run.folder().string()));
  MUSTER_CHECK_OK(writeFileAtomically(run.folder() / "expect.txt",
                                      kube::expectText(run.submission(), nodes, seen.nodes)));
  MUSTER_CHECK_OK(writeAllPages(run));
  MUSTER_TRY(const FleetCommandOptions options, parseFleetOptions(fleetArguments(run)));
  return fleetCommand(options);
}

Result<int> kubeWait(const kube::RunStore& run) {
  installInterruptHandlers();
  std::string shown;
  double asked = -kAsk, answered = systemClock().now();
  for (;; usleep(kLook)) {
    if (interrupted().load()) {
      printText("the pods continue; collect their records later with: muster k8s collect --wait {}\n",
                shellQuote(run.folder().string()));
      return kExitInterrupted;
    }
    if (systemClock().now() - asked < kAsk) continue;
    asked = systemClock().now();
    const auto seen = kube::look(run);
    if (!seen.ok() && asked - answered > kPatience) return seen.error();
    if (!seen.ok()) {
      printText("Kubernetes does not answer, retrying: {}\n", seen.error().message);
      std::fflush(stdout);
      continue;
    }
    answered = asked;
    MUSTER_TRY(const auto nodes, progressNow(run, *seen));
    if (const std::string now = countText(nodes); now != shown)
      printText("{} {}\n", formatUtc(systemClock().wallUnix()), shown = now);
    std::fflush(stdout);
    if (!kube::anyLive(*seen)) return kubeCollect(run);
  }
}

}  // namespace muster
