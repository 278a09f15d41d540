// SPDX-License-Identifier: Apache-2.0
// Compares what records say of stages over several nodes: their scope, and the groups that met, beside the
// nodes that the fleet has.
#include "reports/fleet/blame/cluster_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"

namespace muster::fleet {

std::set<uint32_t> clusterStages(const FleetRecords& records, const FleetNodes& nodes) {
  std::map<uint32_t, size_t> votes;
  size_t withRecord = 0;
  for (const FleetNode& node : nodes) {
    std::set<uint32_t> held;
    for (const size_t i : node.records)
      for (const StageSummary& stage : records.nodes[i].stages)
        if (stage.scope == Scope::kCluster) held.insert(stage.name);
    for (const uint32_t stage : held) ++votes[stage];
    if (!node.records.empty()) ++withRecord;
  }
  std::set<uint32_t> agreed;
  for (const auto& [stage, own] : votes)
    if (2 * own >= withRecord) agreed.insert(stage);
  return agreed;
}

namespace {

/// What all nodes of a group measured together is in the record of its first node alone. Without that record
/// nobody has judged it, whatever the others say.
std::vector<std::string> unreportedGroups(const FleetRecords& records, const FleetNodes& nodes) {
  const std::set<uint32_t> overNodes = clusterStages(records, nodes);
  struct Group {
    std::pair<uint32_t, int> stageOfRun;  ///< and the number of nodes in the run
    bool reported = false;                ///< the record of its first node counts
    std::vector<std::string> members;
  };
  std::map<std::string, Group> groups;
  std::map<std::pair<uint32_t, int>, std::string> absent;  // a first node that did not run it
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records)
      for (const StageSummary& stage : records.nodes[i].stages) {
        if (!overNodes.contains(stage.name) || stage.state == StageState::kElsewhere) continue;
        const std::pair<uint32_t, int> stageOfRun{stage.name, records.nodes[i].nodeCount};
        const bool isFirst = records.nodes[i].nodeRank == 0 && records.nodes[i].nodeCount > 1;
        if (isFirst && stage.state != StageState::kRan) absent.emplace(stageOfRun, node.name);
        if (stage.state != StageState::kRan || stage.groupNodes < 2) continue;
        Group& group =
            groups[fmt::format("stage {} of {} nodes", records.names->texts[stage.name], stage.groupNodes)];
        group.stageOfRun = stageOfRun;
        group.reported |= records.nodes[i].nodeRank == 0;
        group.members.push_back(node.name);
      }
  std::vector<std::string> silent, reasons;
  for (const FleetNode& node : nodes)
    if (node.records.empty()) silent.push_back(node.name);
  for (const auto& [name, group] : groups) {
    if (group.reported) continue;
    const std::string who = fmt::format("{} ({})", printable(name, 200), devicesText(group.members));
    if (const auto at = absent.find(group.stageOfRun); at != absent.end())
      reasons.push_back(fmt::format(
          "{}: its first node, {}, did not run it, and only that one holds the results of the whole "
          "group",
          who, at->second));
    else
      reasons.push_back(
          fmt::format("{}: no record of its first node, which holds the results of the whole group{}", who,
                      silent.empty() ? "" : "; without a record that counts: " + devicesText(silent)));
  }
  return reasons;
}

/// Sizes of groups that the plan asks for and that the fleet has nodes enough for, but no run had; and nodes
/// that say they were idle in a group of another size than its members do.
std::vector<std::string> missingGroups(const FleetRecords& records, const FleetNodes& nodes) {
  struct Sweep {
    int wanted = 0;           ///< nodes, of a group that a run was too small for
    bool skipped = false;     ///< by a member of a group, whose result lacks for that
    std::set<int> ran, idle;  ///< sizes, as members have them and as others do
  };
  std::map<std::string, Sweep> sweeps;
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records)
      for (const StageSummary& stage : records.nodes[i].stages) {
        if (stage.scope != Scope::kCluster) continue;
        Sweep& sweep = sweeps[records.names->texts[stage.name]];
        sweep.skipped |= stage.state == StageState::kSkipped;
        if (stage.groupNodes == 0) continue;
        if (stage.state == StageState::kRan) sweep.ran.insert(stage.groupNodes);
        if (stage.state == StageState::kIdle) sweep.idle.insert(stage.groupNodes);
        if (stage.state == StageState::kSkipped) sweep.wanted = std::max(sweep.wanted, stage.groupNodes);
      }
  std::vector<std::string> reasons;
  for (const auto& [stage, sweep] : sweeps) {
    if (sweep.ran.empty() && sweep.wanted > 0 && static_cast<size_t>(sweep.wanted) <= nodes.size())
      reasons.push_back(fmt::format("stage {}: no run had a group of {} nodes, and the fleet has {}",
                                    printable(stage, 200), sweep.wanted, nodes.size()));
    for (const int size : sweep.idle)
      if (!sweep.ran.contains(size) && !sweep.skipped)
        reasons.push_back(
            fmt::format("stage {}: nodes were idle beside a group of {}, of which there is no record",
                        printable(stage, 200), size));
  }
  return reasons;
}

/// The most nodes that a run had in which the node took part in the stage; 0: in none.
int nodesMet(const FleetRecords& records, const FleetNode& node, uint32_t stage) {
  int most = 0;
  for (const size_t i : node.records)
    for (const StageSummary& one : records.nodes[i].stages)
      if (one.name == stage && (one.state == StageState::kRan || one.state == StageState::kIdle))
        most = std::max(most, records.nodes[i].nodeCount);
  return most;
}

/// Whether all nodes had the stage alone, and it is an optional one that measured nothing for that.
bool wasTriedAlone(const FleetRecords& records, const FleetNodes& nodes, uint32_t stage) {
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records)
      for (const StageSummary& one : records.nodes[i].stages)
        if (one.name == stage && (one.state == StageState::kRan || one.state == StageState::kIdle) &&
            (!one.unmeasured || records.nodes[i].nodeCount > 1))
          return false;
  return true;
}

/// Stages over several nodes that ran in runs with fewer nodes than the fleet has, by the size of these runs:
/// nobody has measured what connects the nodes of one run with those of another.
std::map<int, std::string> separateRuns(const FleetRecords& records, const FleetNodes& nodes) {
  const auto measured = static_cast<int>(
      std::count_if(nodes.begin(), nodes.end(), [](const FleetNode& node) { return !node.records.empty(); }));
  std::map<int, std::pair<std::set<std::string>, std::set<std::string>>> runs;  // by size: stages and nodes
  for (const uint32_t stage : clusterStages(records, nodes)) {
    if (wasTriedAlone(records, nodes, stage)) continue;
    for (const FleetNode& node : nodes)
      if (const int met = nodesMet(records, node, stage); met > 0 && met < measured) {
        runs[met].first.insert(printable(records.names->texts[stage], 200));
        runs[met].second.insert(node.name);
      }
  }
  std::map<int, std::string> texts;
  for (const auto& [size, found] : runs)
    texts[size] = fmt::format(
        "{} ran with {} on {}, and the fleet has {}: what connects them was not measured; run "
        "the plan on all nodes together (`muster slurm`, `muster k8s`, or `muster run --nnodes "
        "{}` on each)",
        devicesText({found.first.begin(), found.first.end()}),
        size == 1 ? "no other node" : plural(static_cast<size_t>(size), "node"),
        devicesText({found.second.begin(), found.second.end()}), nodes.size(), nodes.size());
  return texts;
}

/// The most nodes of a run with a stage over several nodes, where the fleet expects fewer; 0: it does not.
size_t nodesLeftOut(const FleetRecords& records, const FleetNodes& nodes) {
  size_t most = 0;
  for (const uint32_t stage : clusterStages(records, nodes))
    for (const FleetNode& node : nodes)
      most = std::max(most, static_cast<size_t>(nodesMet(records, node, stage)));
  return most > nodes.size() ? most : 0;
}

/// Nodes that met in several groups of the same size: as separateRuns().
std::vector<std::string> mixedGroups(const FleetRecords& records, const FleetNodes& nodes) {
  std::vector<std::string> reasons;
  for (const uint32_t stage : clusterStages(records, nodes)) {
    std::map<std::string, std::vector<std::string>> groups;  // nodes by the id of their group
    for (const FleetNode& node : nodes)
      for (const size_t i : node.records)
        for (const StageSummary& one : records.nodes[i].stages)
          if (const std::string& id = records.names->texts[one.groupId];
              one.name == stage && one.state == StageState::kRan && !id.empty())
            groups[id].push_back(node.name);
    if (groups.size() < 2) continue;
    std::vector<std::string> texts;
    for (const auto& [id, members] : groups) texts.push_back(devicesText(members));
    std::sort(texts.begin(), texts.end());
    reasons.push_back(
        fmt::format("{}: these nodes met each other only: {}; what connects them with the others was "
                    "not measured; run the plan on all nodes together",
                    printable(records.names->texts[stage], 200), join(texts, " | ")));
  }
  return reasons;
}

}  // namespace

GroupGaps findGroupGaps(const FleetRecords& records, const FleetOptions& options, const FleetNodes& nodes) {
  GroupGaps gaps;
  for (auto& [size, text] : separateRuns(records, nodes))
    (size == 1 || !options.manyRuns ? gaps.reasons : gaps.notes).push_back(std::move(text));
  if (const size_t ran = nodesLeftOut(records, nodes); ran > 0)
    gaps.notes.push_back(
        fmt::format("a run had {} nodes, of which {} are expected here: nothing is said of the others", ran,
                    nodes.size()));
  for (std::vector<std::string> more :
       {unreportedGroups(records, nodes), missingGroups(records, nodes), mixedGroups(records, nodes)})
    std::move(more.begin(), more.end(), std::back_inserter(options.manyRuns ? gaps.notes : gaps.reasons));
  return gaps;
}

}  // namespace muster::fleet
