// SPDX-License-Identifier: Apache-2.0
// Assigns records to expected nodes and determines the state of each node.
#include "reports/fleet/assess/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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
    return {};
  }

  /// The plan that was asked for; else the one that most expected nodes ran, of equals the one that ran last.
  void choosePlan() {
    struct Votes {
      std::set<std::string> nodes;
      double last = 0;
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
      v.nodes.insert(node.node);
      v.last = std::max(v.last, node.started);
      v.example = &node;
      v.names[node.planName].insert(node.node);
    }
    const auto best = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.nodes.size(), a.second.last) <
             std::pair(b.second.nodes.size(), b.second.last);
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
      if (identity != best->first && other.nodes.size() == best->second.nodes.size() &&
          other.nodes != best->second.nodes)
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
        if (staleOf_[at->second].empty()) staleOf_[at->second] = stale;
      } else {
        made_.withoutRecord.push_back({run.path, run.node, state, interruptedReason(run)});
        interruptedOf_[at->second] = made_.withoutRecord.back().reason;
      }
    }
  }

  /// A torn record does not say whose it is; the folder that launchers name after the node may.
  static bool isOf(const Quarantined& record, const std::string& node) {
    const std::filesystem::path path(record.path);
    return record.node.empty() ? path.filename() == node || path.parent_path().filename() == node
                               : record.node == node;
  }

  void settle(size_t i) {
    FleetNode& node = made_.nodes[i];
    settleRecords(i);
    // A node whose run broke off is not accepted for what another run of it says.
    if (interruptedOf_[i].empty()) return;
    node.gap = interruptedOf_[i];
    if (node.state == NodeState::kRejected) return;
    node.state = NodeState::kIncomplete;
    node.reason = interruptedOf_[i];
  }

  void settleRecords(size_t i) {
    FleetNode& node = made_.nodes[i];
    if (!candidates_[i].empty()) {
      mergeRecords(records_, candidates_[i], node, made_.duplicates);
      return;
    }
    const auto quarantined = std::find_if(records_.quarantined.begin(), records_.quarantined.end(),
                                          [&](const Quarantined& q) { return isOf(q, node.name); });
    const ExpectedNode& expected = options_.expected[i];
    if (!expected.down.empty()) {
      node.state = expected.drained ? NodeState::kDrained : NodeState::kDown;
      node.reason = expected.down;
    } else if (!staleOf_[i].empty()) {
      node.state = NodeState::kStale;
      node.reason = staleOf_[i];
    } else if (quarantined != records_.quarantined.end()) {
      node.state = NodeState::kQuarantined;
      node.reason = quarantined->reason;
    } else {
      node.state = NodeState::kMissing;
      node.reason = "no record found";
    }
  }

  const FleetRecords& records_;
  const FleetOptions& options_;
  Coverage made_;
  std::string identity_;
  std::string rivals_;  ///< why this run may be the wrong one; empty: it is that of the most nodes
  std::map<size_t, std::string> superseded_;  ///< records by their indices, with the reason
  std::map<std::string, size_t> place_;
  std::vector<std::vector<size_t>> candidates_;
  std::vector<std::string> staleOf_;
  std::vector<std::string> interruptedOf_;
};

}  // namespace

Result<Coverage> cover(const FleetRecords& records, const FleetOptions& options) {
  return CoverageMaker(records, options).make();
}

}  // namespace muster::fleet
