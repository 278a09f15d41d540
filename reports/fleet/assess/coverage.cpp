// SPDX-License-Identifier: Apache-2.0
// Assigns records to expected nodes and determines the state of each node.
#include "reports/fleet/assess/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reports/fleet/assess/node_merge.h"
#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/check/rejudged.h"
#include "reports/fleet/check/run_mixture.h"
#include "reports/fleet/read/label_list.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

/// What makes two records ones of the same run: the id by which all of its nodes were started, the plan's
/// text, what was changed of it, and where it ran.
std::string runIdentity(const NodeSummary& node, bool manyRuns) {
  std::string identity;
  for (const std::string& part : {manyRuns ? "" : node.fleetId, node.planSha256, node.backend,
                                  std::string(node.simulated ? "sim" : "")})
    appendPart(identity, part);
  for (const std::string& part : node.overrides) appendPart(identity, part);
  return identity;
}

std::string fleetName(const std::string& id) {
  return id.empty() ? "no fleet run" : "fleet run " + printable(id, 80);
}

class CoverageMaker {
 public:
  CoverageMaker(const FleetRecords& records, const FleetOptions& options)
      : records_(records), options_(options) {}

  Result<Coverage> make() {
    MUSTER_CHECK_OK(placeExpected());
    superseded_ = supersededRecords(records_, options_);
    choosePlan();
    sortRecords();
    sortInterruptedRuns();
    placeQuarantined();
    if (!options_.manyRuns) {
      if (std::string note = mixtureNote(records_, candidates_, made_.nodes, made_.run); !note.empty())
        made_.notes.push_back(std::move(note));
      dropOutdated();
    }
    for (size_t i = 0; i < made_.nodes.size(); ++i) settle(i);
    if (!rivals_.empty()) blockRivals();
    return std::move(made_);
  }

 private:
  Status placeExpected() {
    if (options_.expected.empty())
      return Error{ErrorCode::kUsage, "the list of expected nodes is empty; expected at least one name",
                   options_.expectedFrom};
    for (const ExpectedNode& expected : options_.expected) {
      if (!isPlainName(expected.name))
        return Error{ErrorCode::kUsage,
                     fmt::format("\"{}\" is not a node name", printable(expected.name, 80)),
                     options_.expectedFrom};
      if (!place_.emplace(expected.name, made_.nodes.size()).second)
        return Error{ErrorCode::kUsage,
                     fmt::format("node {} is listed twice; list each node once", expected.name),
                     options_.expectedFrom};
      made_.nodes.push_back({});
      made_.nodes.back().name = expected.name;
    }
    candidates_.resize(made_.nodes.size());
    staleOf_.resize(made_.nodes.size());
    interruptedOf_.resize(made_.nodes.size());
    notCounted_.resize(made_.nodes.size());
    return {};
  }

  /// The plan that was asked for; else the newest of those that many of the expected nodes ran: more than
  /// half as many as ran the one with most. A node that one of them lost does not make an older run the
  /// better one.
  void choosePlan() {
    struct Votes {
      std::map<std::string, double> nodes;  ///< with the start of each one's newest record
      const NodeSummary* example = nullptr;
      /// Of the plan, by the nodes that say so: free text, which one of them must not choose.
      std::map<std::string, std::set<std::string>> names;
    };
    std::map<std::string, Votes> votes;
    for (const NodeSummary& node : records_.nodes) {
      if (!options_.planSha256.empty() && node.planSha256 != options_.planSha256) continue;
      if (!options_.fleetId.empty() && node.fleetId != options_.fleetId) continue;
      if (!place_.contains(node.node)) continue;
      Votes& v = votes[runIdentity(node, options_.manyRuns)];
      double& started = v.nodes[node.node];
      started = std::max(started, node.started);
      v.example = &node;
      v.names[node.planName].insert(node.node);
    }
    size_t most = 0;
    for (const auto& [identity, v] : votes) most = std::max(most, v.nodes.size());
    const auto rank = [&](const Votes& v) {
      std::vector<double> started;
      for (const auto& [name, at] : v.nodes) started.push_back(at);
      // The middle one: no single record makes an old run a new one.
      const auto middle = started.begin() + static_cast<std::ptrdiff_t>((started.size() - 1) / 2);
      std::nth_element(started.begin(), middle, started.end());
      return std::tuple(2 * v.nodes.size() > most, *middle, v.nodes.size());
    };
    const auto best = std::max_element(votes.begin(), votes.end(), [&](const auto& a, const auto& b) {
      return rank(a.second) < rank(b.second);
    });
    made_.run.planSha256 = options_.planSha256;
    made_.run.fleetId = options_.fleetId;
    if (best == votes.end()) return;
    identity_ = best->first;
    const NodeSummary& example = *best->second.example;
    const auto& names = best->second.names;
    made_.run.planName = std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) {
                           return a.second.size() < b.second.size();
                         })->first;
    made_.run.planSha256 = example.planSha256;
    made_.run.overrides = example.overrides;
    made_.run.fleetId = example.fleetId;
    made_.run.simulated = example.simulated;
    for (const auto& [identity, other] : votes)
      if (other.nodes.size() == best->second.nodes.size() && !isNewer(best->second.nodes, other.nodes))
        rivals_ = fmt::format(
            "two runs or plans have equally many nodes ({}), the other is {}; choose one with --plan FILE or "
            "--fleet-id ID",
            other.nodes.size(), printable(other.example->planName, 80));
    if (votes.size() > 1)
      made_.notes.push_back(
          fmt::format("records of {} runs found; using {}, plan {} (sha256 {}), run by {} of the expected "
                      "nodes; choose another with --plan FILE or --fleet-id ID",
                      votes.size(), fleetName(made_.run.fleetId), printable(made_.run.planName, 80),
                      made_.run.planSha256.substr(0, 12), best->second.nodes.size()));
  }

  /// Whether most nodes of both runs ran the first one later; not where these have no node in common.
  static bool isNewer(const std::map<std::string, double>& run, const std::map<std::string, double>& other) {
    size_t both = 0, later = 0;
    for (const auto& [node, started] : run)
      if (const auto at = other.find(node); at != other.end()) {
        ++both;
        later += started > at->second ? 1 : 0;
      }
    return &run == &other || 2 * later > both;
  }

  static std::string overridesText(const std::vector<std::string>& overrides) {
    return overrides.empty() ? "no --set" : "--set " + join(overrides, " ");
  }

  /// Why a record is not one of this run; empty when it is.
  [[nodiscard]] std::string staleReason(const NodeSummary& node) const {
    if (runIdentity(node, options_.manyRuns) == identity_) return "";
    if (node.planSha256 != made_.run.planSha256)
      return fmt::format("of another plan: {} (sha256 {}), expected {}", printable(node.planName, 80),
                         node.planSha256.substr(0, 12), made_.run.planSha256.substr(0, 12));
    if (!options_.manyRuns && node.fleetId != made_.run.fleetId)
      return fmt::format("of another run: it belongs to {}, expected {}", fleetName(node.fleetId),
                         fleetName(made_.run.fleetId));
    if (node.simulated != made_.run.simulated)
      return node.simulated ? "of another run: it is simulated" : "of another run: it is not simulated";
    if (node.overrides != made_.run.overrides)
      return fmt::format("of another run: {} where the others have {}", overridesText(node.overrides),
                         overridesText(made_.run.overrides));
    return fmt::format("of another run: backend {}", node.backend);
  }

  void sortRecords() {
    for (size_t i = 0; i < records_.nodes.size(); ++i) {
      const NodeSummary& node = records_.nodes[i];
      const auto at = place_.find(node.node);
      const std::string stale = staleReason(node);
      const auto superseded = superseded_.find(i);
      if (superseded != superseded_.end()) {
        made_.duplicates.push_back({node.path, node.node, nameOf(node.acceptance), superseded->second});
      } else if (at == place_.end()) {
        made_.foreign.push_back({node.path, node.node, nameOf(node.acceptance), "this node is not expected"});
      } else if (!stale.empty()) {
        made_.stale.push_back({node.path, node.node, nameOf(node.acceptance), stale});
        staleOf_[at->second] = stale;
        if (node.acceptance != Acceptance::kAccepted)
          addNotCounted(at->second, nameOf(node.acceptance), node, stale);
      } else {
        candidates_[at->second].push_back(i);
      }
    }
  }

  void dropOutdated() {
    for (const auto& [i, reason] : outdatedNodes(records_, candidates_, made_.nodes, made_.run)) {
      for (const size_t k : candidates_[i]) {
        const NodeSummary& node = records_.nodes[k];
        made_.stale.push_back({node.path, node.node, nameOf(node.acceptance), reason});
      }
      candidates_[i].clear();
      staleOf_[i] = reason;
    }
  }

  /// As many nodes are of another run, and nobody said which one counts.
  void blockRivals() {
    for (FleetNode& node : made_.nodes) blockNode(node, NodeState::kIncomplete, rivals_);
  }

  /// Why a run without a record is none of those that count; empty when it is one.
  [[nodiscard]] std::string staleReason(const InterruptedRun& run) const {
    if (!made_.run.planSha256.empty() && run.planSha256 != made_.run.planSha256)
      return "of another plan: " + printable(run.planName, 80);
    if (identity_.empty()) return "";  // no record says more
    if (!options_.manyRuns && run.fleetId != made_.run.fleetId)
      return fmt::format("of another run: it belongs to {}, expected {}", fleetName(run.fleetId),
                         fleetName(made_.run.fleetId));
    if (run.simulated != made_.run.simulated || run.overrides != made_.run.overrides)
      return "of another run: started with other options";
    return "";
  }

  /// What is to be done about a run without a record.
  [[nodiscard]] std::string interruptedReason(const InterruptedRun& run) const {
    const std::string stages = fmt::format("{} stage{} finished", run.stages, run.stages == 1 ? "" : "s");
    if (run.running == true)
      return fmt::format("its run is still in progress ({}); wait for its record", stages);
    return fmt::format(
        "its run {} ({}); resume with `{}`{}",
        run.running ? "was interrupted" : "is in progress or was interrupted, as its user can tell", stages,
        options_.resumeWith.empty() ? run.goOnWith : options_.resumeWith,
        options_.resumeWith.empty() && !run.simulated ? " on " + run.node : "");
  }

  void sortInterruptedRuns() {
    for (const InterruptedRun& run : records_.interruptedRuns) {
      const std::string state = run.running == true ? "running" : "interrupted";
      const auto at = place_.find(run.node);
      const std::string stale = staleReason(run);
      if (at == place_.end()) {
        made_.foreign.push_back({run.path, run.node, state, "this node is not expected"});
      } else if (!stale.empty()) {
        made_.stale.push_back({run.path, run.node, state, stale});
        addNotCounted(at->second, "without a record", run, stale);
        if (staleOf_[at->second].empty()) staleOf_[at->second] = stale;
      } else {
        made_.withoutRecord.push_back({run.path, run.node, state, interruptedReason(run)});
        interruptedOf_[at->second] = made_.withoutRecord.back().reason;
      }
    }
  }

  /// Keeps a node's newest run that failed, or left no record, and does not count. If the operator named the
  /// plan or the run that counts, runs that differ in that are ignored.
  template <typename Run>
  void addNotCounted(size_t i, std::string_view how, const Run& run, const std::string& stale) {
    const bool isOfAnother = (!options_.fleetId.empty() && run.fleetId != made_.run.fleetId) ||
                             (!options_.planSha256.empty() && run.planSha256 != made_.run.planSha256);
    if (isOfAnother || run.simulated != made_.run.simulated) return;
    NotCounted& newest = notCounted_[i];
    if (!newest.why.empty() && newest.started >= run.started) return;
    newest = {
        run.started,
        fmt::format("a newer run of it, {}, is {} ({}); choose the run that counts by what they differ in, "
                    "--plan FILE or --fleet-id ID, or move that one away",
                    printable(run.path, 200), how, stale)};
  }

  /// Why a node is not accepted by the records that count: one of it that is newer, or torn, is none of them.
  [[nodiscard]] std::string leftOut(size_t i) const {
    if (candidates_[i].empty()) return "";
    double newest = 0;
    for (const size_t k : candidates_[i]) newest = std::max(newest, records_.nodes[k].started);
    if (notCounted_[i].started > newest) return notCounted_[i].why;
    const auto torn = tornOf_.find(made_.nodes[i].name);
    if (torn != tornOf_.end())
      return fmt::format("{} cannot be read: {}; run it again, or move that away",
                         printable(torn->second->path, 200), torn->second->reason);
    return "";
  }

  /// A torn record does not say whose it is; the folder that launchers name after the node may. What lies in
  /// the folder of one node is not another one's, also where folders are numbered ("node-0002").
  void placeQuarantined() {
    std::map<std::filesystem::path, std::set<std::string>> below;  // by folder, the nodes with a record there
    std::set<std::filesystem::path> numbered;  // whose folders are each a node's, and not named after it
    for (const NodeSummary& node : records_.nodes) {
      const std::filesystem::path folder = std::filesystem::path(node.path).parent_path();
      if (!folder.empty() && folder.filename() != node.node) numbered.insert(folder.parent_path());
      for (std::filesystem::path at = folder; !at.empty(); at = at.parent_path()) below[at].insert(node.node);
    }
    const auto isOfAnother = [&](const std::filesystem::path& entry) {
      for (std::filesystem::path at = entry.parent_path(); !at.empty(); at = at.parent_path())
        if (const auto nodes = below.find(at); numbered.contains(at.parent_path()) && nodes != below.end() &&
                                               nodes->second.size() == 1 &&
                                               !nodes->second.contains(entry.filename().string()))
          return true;
      return false;
    };
    for (const Quarantined& bad : records_.quarantined) {
      if (!bad.node.empty()) {
        quarantinedOf_.emplace(bad.node, &bad);
        continue;
      }
      const std::filesystem::path path(bad.path);
      // What lies in the directory of one node is not another one's.
      std::set<std::string> nodes;
      for (const auto& part : path)
        if (place_.contains(part.string())) nodes.insert(part.string());
      if (nodes.size() > 1) continue;
      for (const std::filesystem::path& entry : {path, path.parent_path()}) {
        quarantinedOf_.emplace(entry.filename().string(), &bad);
        if (bad.torn && !isOfAnother(entry)) tornOf_.emplace(entry.filename().string(), &bad);
      }
    }
  }

  void settle(size_t i) {
    FleetNode& node = made_.nodes[i];
    settleRecords(i);
    // A node whose run broke off is not accepted for what another run of it says.
    const std::string gap = interruptedOf_[i].empty() ? leftOut(i) : interruptedOf_[i];
    if (gap.empty()) return;
    node.gap = gap;
    if (node.state == NodeState::kRejected) return;
    node.state = NodeState::kIncomplete;
    node.reason = gap;
  }

  void settleRecords(size_t i) {
    FleetNode& node = made_.nodes[i];
    if (!candidates_[i].empty()) {
      mergeRecords(records_, candidates_[i], node, made_.duplicates);
      return;
    }
    const auto quarantined = quarantinedOf_.find(node.name);
    const ExpectedNode& expected = options_.expected[i];
    if (!expected.down.empty()) {
      node.state = expected.drained ? NodeState::kDrained : NodeState::kDown;
      node.reason = expected.down;
    } else if (!staleOf_[i].empty()) {
      node.state = NodeState::kStale;
      node.reason = staleOf_[i];
    } else if (quarantined != quarantinedOf_.end()) {
      node.state = NodeState::kQuarantined;
      node.reason = quarantined->second->reason;
    } else {
      node.state = NodeState::kMissing;
      node.reason = "no record found";
    }
  }

  const FleetRecords& records_;
  const FleetOptions& options_;
  Coverage made_;
  std::string identity_;
  std::string rivals_;  ///< why this run may be the wrong one; empty: no other has as many nodes
  std::map<size_t, std::string> superseded_;  ///< records by their indices, with the reason
  std::map<std::string, size_t> place_;
  std::map<std::string, const Quarantined*> quarantinedOf_;  ///< by node
  std::map<std::string, const Quarantined*> tornOf_;         ///< of those the torn ones
  std::vector<std::vector<size_t>> candidates_;
  std::vector<std::string> staleOf_;
  std::vector<std::string> interruptedOf_;
  struct NotCounted {
    double started = 0;
    std::string why;
  };
  std::vector<NotCounted> notCounted_;
};

}  // namespace

Result<Coverage> cover(const FleetRecords& records, const FleetOptions& options) {
  return CoverageMaker(records, options).make();
}

}  // namespace muster::fleet
