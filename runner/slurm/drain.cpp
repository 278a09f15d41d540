// SPDX-License-Identifier: Apache-2.0
// Decides which nodes to drain and undrain, and does it.
#include "runner/slurm/drain.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::slurm {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDrained = "drained.jsonl";
constexpr uint64_t kMostDrainedBytes = 64ull << 20;
constexpr size_t kReasonBytes = 200;

Status note(const RunStore& run, const char* action, const NodeAction& node) {
  const fs::path path = run.folder() / kDrained;
  MUSTER_TRY(const Fd file, openOwnFile(path, O_WRONLY | O_APPEND));
  return appendAndSync(
      file.get(), dumpJson({{"action", action}, {"node", node.node}, {"reason", node.reason}}) + "\n", path);
}

/// Why a node must be left as it is; empty when it may be drained.
std::string whyNotDrain(const std::string& node, const Nodes& known) {
  const auto found = known.find(node);
  if (found == known.end()) return "Slurm has no such node";
  if (found->second.drained()) return "is drained already (" + found->second.text() + ")";
  if (!found->second.available()) return "gets no work as it is (" + found->second.text() + ")";
  return "";
}

/// How every reason of a run begins.
std::string reasonHead(const std::string& runId) {
  return "muster: " + runId + ": ";
}

std::string whyNotUndrain(const Submission& run, const std::set<std::string>& ofRun,
                          const NodeAction& drained, const Nodes& known) {
  if (ofRun.count(drained.node) == 0) return "is not a node of this run";
  const auto found = known.find(drained.node);
  if (found == known.end()) return "Slurm has no such node";
  if (!found->second.drained()) return fmt::format("is no longer drained ({})", found->second.text());
  if (!found->second.reason.starts_with(reasonHead(run.id)))
    return "was not drained by this run (" + found->second.text() + ")";
  if (found->second.reason != drained.reason)
    return "its reason was changed since (" + found->second.text() + ")";
  return "";
}

bool isDrainedBy(const NodeAction& action, const Nodes& known) {
  const auto found = known.find(action.node);
  return found != known.end() && found->second.drained() && found->second.reason == action.reason;
}

void leave(NodeAction& action, std::string why) {
  action.reason.clear();
  action.why = std::move(why);
}

/// `change` returns Slurm's words if it refuses that node: the others are changed all the same. An error ends
/// it. In both cases this prints what became of each node, because only an Error is returned.
Status changeEach(std::vector<NodeAction>& actions, const char* done,
                  const std::function<Result<std::string>(NodeAction&)>& change) {
  std::vector<std::string> refused;
  for (size_t i = 0; i < actions.size(); ++i) {
    NodeAction& action = actions[i];
    if (action.reason.empty()) continue;
    Result<std::string> refusal = change(action);
    if (!refusal.ok()) {
      showActions(std::span(actions).first(i), done);
      return std::move(refusal).error().context("stopped at " + action.node);
    }
    if (refusal->empty()) continue;
    leave(action, "Slurm refused: " + *refusal);
    refused.push_back(action.node);
  }
  if (refused.empty()) return {};
  showActions(actions, done);
  return Error{ErrorCode::kUsage,
               fmt::format("not {}, because Slurm refused (see above): {}", done, join(refused, ", ")), ""};
}

}  // namespace

void showActions(std::span<const NodeAction> actions, const std::string& done) {
  for (const NodeAction& action : actions)
    if (action.reason.empty())
      printText("{}: not changed: {}\n", printable(action.node), printable(action.why));
    else
      printText("{}: {}: {}\n", printable(action.node), done, printable(action.reason));
}

std::string drainReason(const std::string& runId, const std::string& what) {
  std::string reason = printable(reasonHead(runId) + what, kReasonBytes);
  std::replace(reason.begin(), reason.end(), '"', '\'');
  return std::string(trim(reason));
}

std::vector<NodeAction> planDrain(const std::string& runId, const std::vector<RejectedNode>& rejected,
                                  const Nodes& known) {
  std::vector<NodeAction> actions;
  for (const RejectedNode& node : rejected) {
    const std::string why = !node.unconfirmed.empty() ? node.unconfirmed
                            : node.affected           ? node.what
                                                      : whyNotDrain(node.node, known);
    if (why.empty())
      actions.push_back({node.node, drainReason(runId, node.what), node.what});
    else
      actions.push_back({node.node, "", why});
  }
  return actions;
}

std::vector<NodeAction> planUndrain(const Submission& run, const std::vector<NodeAction>& drained,
                                    const Nodes& known) {
  const std::set<std::string> ofRun(run.nodes.begin(), run.nodes.end());
  std::vector<NodeAction> actions;
  for (const NodeAction& node : drained) {
    const std::string why = whyNotUndrain(run, ofRun, node, known);
    actions.push_back(
        {node.node, why.empty() ? node.reason : "", why.empty() ? "was drained by this run" : why});
  }
  return actions;
}

Status applyDrain(const RunStore& run, std::vector<NodeAction>& actions) {
  return changeEach(actions, "drained", [&](NodeAction& action) -> Result<std::string> {
    // Slurm has no way to drain only if nobody else has: look once more, as late as possible.
    MUSTER_TRY(const Nodes known, readNodes());
    if (std::string why = whyNotDrain(action.node, known); !why.empty()) {
      leave(action, std::move(why));
      return std::string();
    }
    // Noted first: a drain that nobody remembers could never be undone by us.
    MUSTER_CHECK_OK(note(run, "drain", action));
    const Status drained = drain(action.node, action.reason);
    if (drained.ok()) return std::string();
    if (drained.error().code == ErrorCode::kTimeout) return drained.error();  // may still come about
    MUSTER_TRY(const Nodes now, readNodes());
    if (isDrainedBy(action, now)) return std::string();
    MUSTER_CHECK_OK(note(run, "refused", action));
    return drained.error().text();
  });
}

Status applyUndrain(const RunStore& run, std::vector<NodeAction>& actions) {
  const auto& nodes = run.submission().nodes;
  const std::set<std::string> ofRun(nodes.begin(), nodes.end());
  // Whom an administrator gave back, or drained anew, this run has no longer drained.
  MUSTER_TRY(const Nodes before, readNodes());
  for (const NodeAction& action : actions)
    if (const auto at = before.find(action.node);
        action.reason.empty() && ofRun.contains(action.node) && at != before.end() &&
        !(at->second.drained() && at->second.reason.starts_with(reasonHead(run.submission().id))))
      MUSTER_CHECK_OK(note(run, "given back by others", action));
  return changeEach(actions, "given back", [&](NodeAction& action) -> Result<std::string> {
    MUSTER_TRY(const Nodes known, readNodes());
    if (std::string why = whyNotUndrain(run.submission(), ofRun, action, known); !why.empty()) {
      leave(action, std::move(why));
      return std::string();
    }
    if (const Status undrained = undrain(action.node); !undrained.ok()) {
      if (undrained.error().code == ErrorCode::kTimeout) return undrained.error();
      MUSTER_TRY(const Nodes now, readNodes());
      if (isDrainedBy(action, now)) return undrained.error().text();
    }
    MUSTER_CHECK_OK(note(run, "undrain", action));
    return std::string();
  });
}

Result<std::vector<NodeAction>> drainedByRun(const RunStore& run) {
  const fs::path path = run.folder() / kDrained;
  std::error_code error;
  if (!fs::exists(path, error)) return std::vector<NodeAction>();
  std::map<std::string, std::pair<size_t, NodeAction>> last;  // by node; with the number of its last line
  size_t number = 0;
  MUSTER_TRY(const std::string text, readOwnFile(path, kMostDrainedBytes));
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    MUSTER_TRY(const Json json, parseJson(line).context(path.string()));
    std::string action;
    NodeAction node;
    JsonReader reader(json, path.string());
    reader.read("action", action);
    reader.read("node", node.node);
    reader.read("reason", node.reason);
    MUSTER_CHECK_OK(reader.status());
    if (action == "drain")
      last.insert_or_assign(node.node, std::pair(number++, node));
    else
      last.erase(node.node);
  }
  std::map<size_t, NodeAction> ordered;
  for (auto& [name, numbered] : last) ordered.emplace(numbered.first, std::move(numbered.second));
  std::vector<NodeAction> open;
  for (auto& [line, action] : ordered) open.push_back(std::move(action));
  return open;
}

}  // namespace muster::slurm
