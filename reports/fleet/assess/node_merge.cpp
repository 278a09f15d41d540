// SPDX-License-Identifier: Apache-2.0
// Merges the records of one node and resolves duplicates.
#include "reports/fleet/assess/node_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/fleet/blame/culprit.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/record/record_check.h"

namespace muster::fleet {
namespace {

/// How bad an acceptance is; the greatest of a node's records counts.
int badness(Acceptance acceptance) {
  if (acceptance == Acceptance::kAccepted) return 0;
  if (acceptance == Acceptance::kNoGpu) return 1;
  return acceptance == Acceptance::kRejected ? 3 : 2;
}

bool ranElsewhere(const StageSummary& stage) {
  return stage.state == StageState::kElsewhere;
}

void add(Accounting& sum, const Accounting& part) {
  sum.expected += part.expected;
  sum.requiredSkips += part.requiredSkips;
  for (size_t i = 0; i < part.counts.size(); ++i) sum.counts[i] += part.counts[i];
}

class Merge {
 public:
  Merge(const FleetRecords& records, FleetNode& node) : records_(records), node_(node) {}

  /// The chosen record that makes `record` a duplicate, as it ran no stage of the plan that they all lack.
  [[nodiscard]] const NodeSummary* original(const NodeSummary& record) const {
    std::set<uint32_t> lacking = ran(record);
    const std::set<uint32_t> own = lacking;
    const NodeSummary* first = nullptr;
    for (const size_t i : node_.records) {
      const std::set<uint32_t> stages = ran(records_.nodes[i]);
      const auto isShared = [&](uint32_t stage) { return stages.contains(stage); };
      if (first == nullptr && (own.empty() || std::any_of(own.begin(), own.end(), isShared)))
        first = &records_.nodes[i];
      std::erase_if(lacking, isShared);
    }
    return lacking.empty() ? first : nullptr;
  }

  /// Sums up the chosen records, the first one's inventory; what every one left to another was never run.
  void sum() {
    std::vector<std::string> left;
    for (const auto& [name, chosen] : chosenStages(records_, node_)) {
      add(node_.accounting, chosen.stage->accounting);
      if (ranElsewhere(*chosen.stage)) left.emplace_back(name);
    }
    // Nobody ran them: they could not be measured.
    size_t& elsewhere = node_.accounting.counts[static_cast<size_t>(Outcome::kElsewhere)];
    node_.accounting.counts[static_cast<size_t>(Outcome::kError)] += elsewhere;
    elsewhere = 0;
    if (left.empty()) return;
    node_.gap = fmt::format("no record of the job that runs {}", printable(join(left, ", "), 200));
    if (node_.state == NodeState::kRejected) return;
    node_.state = NodeState::kIncomplete;
    node_.reason = node_.gap;
  }

  void judge() {
    const NodeSummary* worst = nullptr;
    for (const size_t i : node_.records) {
      const NodeSummary& record = records_.nodes[i];
      if (worst == nullptr || badness(record.acceptance) > badness(worst->acceptance)) worst = &record;
    }
    const int bad = badness(worst->acceptance);
    node_.state = bad == 0 ? NodeState::kAccepted : bad == 3 ? NodeState::kRejected : NodeState::kIncomplete;
    if (bad > 0) {
      node_.reason = worst->reasons.empty() ? nameOf(worst->acceptance) : join(worst->reasons, "; ");
      // Counts alone do not tell what to look at; deviations stand with the worst first.
      if (!worst->deviations.empty())
        node_.reason += "; " + deviationLine(worst->deviations.front(), *records_.names);
    }
    node_.devices =
        static_cast<size_t>(std::count_if(worst->devices.begin(), worst->devices.end(),
                                          [](const DeviceIdentity& d) { return d.kind != "other"; }));
    node_.sku = worst->profileName;
    if (node_.sku.empty()) node_.sku = worst->devices.empty() ? "unknown" : worst->devices.front().name;
  }

 private:
  [[nodiscard]] std::set<uint32_t> ran(const NodeSummary& record) const {
    std::set<uint32_t> stages;
    for (const StageSummary& stage : record.stages)
      if (!ranElsewhere(stage) && !isOwnStage(records_.names->texts[stage.name])) stages.insert(stage.name);
    return stages;
  }

  const FleetRecords& records_;
  FleetNode& node_;
};

std::string whenAndWhat(const NodeSummary& record) {
  return fmt::format("{} ({}, {})", record.path, nameOf(record.acceptance), formatUtc(record.started));
}

}  // namespace

std::map<std::string_view, ChosenStage> chosenStages(const FleetRecords& records, const FleetNode& node) {
  std::map<std::string_view, ChosenStage> chosen;
  for (const size_t i : node.records)
    for (const StageSummary& stage : records.nodes[i].stages) {
      const ChosenStage one = {&stage, i};
      const auto [at, fresh] = chosen.emplace(records.names->texts[stage.name], one);
      if (!fresh && ranElsewhere(*at->second.stage)) at->second = one;
    }
  return chosen;
}

void mergeRecords(const FleetRecords& records, std::vector<size_t> candidates, FleetNode& node,
                  std::vector<LeftOut>& duplicates) {
  Merge merge(records, node);
  // The worst first, then of the run with most nodes, and of equals the latest: who comes later adds
  // something or is a duplicate.
  std::stable_sort(candidates.begin(), candidates.end(), [&](size_t a, size_t b) {
    const NodeSummary& x = records.nodes[a];
    const NodeSummary& y = records.nodes[b];
    return std::tuple(-badness(x.acceptance), -x.nodeCount, -x.started, x.path) <
           std::tuple(-badness(y.acceptance), -y.nodeCount, -y.started, y.path);
  });
  for (const size_t i : candidates) {
    const NodeSummary& record = records.nodes[i];
    const NodeSummary* original = merge.original(record);
    if (original == nullptr) {
      node.records.push_back(i);
      continue;
    }
    node.repeated.push_back(i);
    const NodeSummary& kept = *original;
    std::string why = "a duplicate; using " + whenAndWhat(kept);
    if (badness(kept.acceptance) > badness(record.acceptance) && kept.started < record.started)
      why += ": a repeated run does not replace a failed one; after a repair, move the old record away";
    duplicates.push_back({record.path, record.node, nameOf(record.acceptance), why});
  }
  merge.judge();
  merge.sum();
}

FleetCount countFleet(const FleetRecords& records, const FleetNodes& nodes) {
  FleetCount count;
  struct Group {
    GroupStage stage;
    bool idle = false;  ///< nodes that had no part: what they say is counted once, too
  };
  std::map<std::string, Group> groups;
  for (const FleetNode& node : nodes) {
    add(count.accounting, node.accounting);
    for (const auto& [name, chosen] : chosenStages(records, node)) {
      const StageSummary& stage = *chosen.stage;
      if (stage.scope != Scope::kCluster || ranElsewhere(stage)) continue;
      Group& group =
          groups[fmt::format("{}\n{}\n{}\n{}", name, stage.groupNodes, stage.worldSize, stage.culprit)];
      if (group.stage.records++ == 0) {
        group.stage.stage = name;
        group.stage.nodes = static_cast<size_t>(stage.groupNodes);
        group.stage.ranks = static_cast<size_t>(stage.worldSize);
        group.stage.culprit = stage.culprit;
        group.stage.outcome = stage.outcome;
        group.idle = stage.state == StageState::kIdle;
        continue;
      }
      group.stage.outcome = std::min(group.stage.outcome, stage.outcome);
      // The first node of the group has counted what all of them share. What was deferred each has settled.
      Accounting shared = stage.shared;
      size_t& deferred = shared.counts[static_cast<size_t>(Outcome::kDeferred)];
      shared.expected -= deferred;
      deferred = 0;
      count.accounting.expected -= shared.expected;
      count.accounting.requiredSkips -= shared.requiredSkips;
      for (size_t k = 0; k < shared.counts.size(); ++k) count.accounting.counts[k] -= shared.counts[k];
    }
  }
  for (auto& [key, group] : groups)
    if (!group.idle) count.groups.push_back(std::move(group.stage));
  return count;
}

}  // namespace muster::fleet
