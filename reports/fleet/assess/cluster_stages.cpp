// SPDX-License-Identifier: Apache-2.0
// Compares what records say of stages over several nodes: their scope, the nodes of their run, and the groups
// that met, beside the nodes that the fleet has.
#include "reports/fleet/assess/cluster_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "reports/fleet/read/runs.h"
#include "runner/core/majority.h"
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
    if (isMajority(own, withRecord)) agreed.insert(stage);
  return agreed;
}

namespace {

/// Whether it took part in a stage over several nodes.
bool tookPart(const NodeSummary& record, const std::set<uint32_t>& overNodes) {
  return record.nodeCount > 1 &&
         std::any_of(record.stages.begin(), record.stages.end(), [&](const StageSummary& stage) {
           return overNodes.contains(stage.name) && stage.state != StageState::kElsewhere;
         });
}

/// nodeCounts() by what `runOf` has at the index of a record, instead of by fleet id.
std::map<std::string, int> agreedCounts(const FleetRecords& records, const FleetNodes& nodes,
                                        const std::vector<std::string>& runOf) {
  const std::set<uint32_t> overNodes = clusterStages(records, nodes);
  std::map<std::string, std::map<int, size_t>> votes;
  std::map<std::string, size_t> all;
  for (const FleetNode& node : nodes) {
    std::map<std::string, std::set<int>> said;  // a node may have many records of a run
    for (const size_t i : node.records)
      if (const NodeSummary& record = records.nodes[i]; tookPart(record, overNodes))
        said[runOf[i]].insert(record.nodeCount);
    for (const auto& [run, counts] : said) {
      for (const int count : counts) ++votes[run][count];
      ++all[run];
    }
  }
  std::map<std::string, int> agreed;
  for (const auto& [run, counts] : votes)
    for (const auto& [count, times] : counts)
      if (isMajority(times, all[run])) agreed[run] = count;
  return agreed;
}

std::vector<std::string> fleetIds(const FleetRecords& records) {
  std::vector<std::string> ids;
  for (const NodeSummary& record : records.nodes) ids.push_back(record.fleetId);
  return ids;
}

}  // namespace

std::map<std::string, int> nodeCounts(const FleetRecords& records, const FleetNodes& nodes) {
  return agreedCounts(records, nodes, fleetIds(records));
}

namespace {

std::vector<std::string> runsOrFleets(const FleetRecords& records, const std::vector<std::string>& runs) {
  std::vector<std::string> runOrFleet = fleetIds(records);
  for (size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].empty()) runOrFleet[i] = runs[i];
  return runOrFleet;
}

}  // namespace

std::set<std::string> namesOf(const FleetNodes& nodes) {
  std::set<std::string> names;
  for (const FleetNode& node : nodes) names.insert(node.name);
  return names;
}

RecordChecks checkNodeCounts(const FleetRecords& records, FleetNodes& nodes) {
  const std::set<uint32_t> overNodes = clusterStages(records, nodes);
  const std::vector<std::string> runOrFleet = runsOrFleets(records, runsOf(records, namesOf(nodes)));
  const std::map<std::string, int> counts = agreedCounts(records, nodes, runOrFleet);
  RecordChecks checks;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const size_t i : nodes[n].records) {
      const NodeSummary& record = records.nodes[i];
      const auto most = counts.find(runOrFleet[i]);
      if (!tookPart(record, overNodes) || most == counts.end() || most->second == record.nodeCount) continue;
      RecordFinding finding;
      finding.kind = FindingKind::kBinding;
      finding.text =
          fmt::format("the record of {} ({}) says that its run had {} nodes, and those of most say {}",
                      nodes[n].name, printable(record.path), record.nodeCount, most->second);
      finding.next = kRunTogether;
      checks.findings.push_back(settled(std::move(finding), {n}, NodeState::kIncomplete, records, nodes));
    }
  return checks;
}

std::vector<Clash> numberClashes(const FleetRecords& records, const FleetNodes& nodes, bool manyRuns) {
  const std::set<uint32_t> overNodes = clusterStages(records, nodes);
  const std::vector<std::string> runs = runsOf(records, namesOf(nodes));
  // The nodes that claim a number, by fleet id and by run; "": one that ran with others but tells no group
  // may be of any run.
  std::map<std::pair<std::string, int>, std::map<std::string, std::set<std::string>>> claims;
  for (const FleetNode& node : nodes) {
    std::vector<size_t> told = node.records;
    for (const size_t i : node.repeated)
      if (!runs[i].empty()) told.push_back(i);
    for (const size_t i : told) {
      const NodeSummary& record = records.nodes[i];
      if (!tookPart(record, overNodes) || (manyRuns && runs[i].empty())) continue;
      const bool ran = std::any_of(record.stages.begin(), record.stages.end(), [](const StageSummary& stage) {
        return stage.state == StageState::kRan && stage.groupNodes > 1;
      });
      claims[{record.fleetId, record.nodeRank}][!runs[i].empty() || ran ? runs[i] : "met nobody"].insert(
          node.name);
    }
  }
  std::vector<Clash> clashes;
  for (auto& [number, byRun] : claims) {
    const std::set<std::string> ofAnyRun = std::exchange(byRun[""], {});
    if (byRun.size() > 1) byRun.erase("");
    for (auto& [run, who] : byRun) {
      who.insert(ofAnyRun.begin(), ofAnyRun.end());
      if (who.size() > 1)
        clashes.push_back({who, fmt::format("each say that they were node {} of the run", number.second)});
    }
  }
  return clashes;
}

namespace {

/// What all nodes of a group measured together is in the record of its first node alone. Without that record
/// nobody has judged it, whatever the others say.
std::vector<std::string> unreportedGroups(const FleetRecords& records, const FleetNodes& nodes) {
  const std::set<uint32_t> overNodes = clusterStages(records, nodes);
  struct Group {
    bool reported = false;  ///< the record of its first node counts
    std::vector<std::string> members;
  };
  std::map<std::string, Group> groups;
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records)
      for (const StageSummary& stage : records.nodes[i].stages) {
        if (stage.state != StageState::kRan || stage.groupNodes < 2 || !overNodes.contains(stage.name))
          continue;
        Group& group =
            groups[fmt::format("stage {} of {} nodes", records.names->texts[stage.name], stage.groupNodes)];
        group.reported |= records.nodes[i].nodeRank == 0;
        group.members.push_back(node.name);
      }
  std::vector<std::string> silent, reasons;
  for (const FleetNode& node : nodes)
    if (node.records.empty()) silent.push_back(node.name);
  for (const auto& [name, group] : groups)
    if (!group.reported)
      reasons.push_back(
          fmt::format("{} ({}): no record of its first node, which holds the results of the whole group{}",
                      printable(name, 200), devicesText(group.members),
                      silent.empty() ? "" : "; without a record that counts: " + devicesText(silent)));
  return reasons;
}

/// Sizes of groups that the plan asks for and that the fleet has nodes enough for, but no run had; and nodes
/// that say they were idle in a group of another size than its members do.
std::vector<std::string> missingGroups(const FleetRecords& records, const FleetNodes& nodes) {
  struct Sweep {
    int wanted = 0;           ///< nodes, of a group that a run was too small for
    std::set<int> ran, idle;  ///< sizes, as members have them and as others do
  };
  std::map<std::string, Sweep> sweeps;
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records)
      for (const StageSummary& stage : records.nodes[i].stages) {
        if (stage.scope != Scope::kCluster || stage.groupNodes == 0) continue;
        Sweep& sweep = sweeps[records.names->texts[stage.name]];
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
      if (!sweep.ran.contains(size))
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

/// Stages over several nodes that ran in runs with fewer nodes than the fleet has, by the size of these runs:
/// nobody has measured what connects the nodes of one run with those of another.
std::map<int, std::string> separateRuns(const FleetRecords& records, const FleetNodes& nodes) {
  const auto measured = static_cast<int>(
      std::count_if(nodes.begin(), nodes.end(), [](const FleetNode& node) { return !node.records.empty(); }));
  std::map<int, std::pair<std::set<std::string>, std::set<std::string>>> runs;  // by size: stages and nodes
  for (const uint32_t stage : clusterStages(records, nodes))
    for (const FleetNode& node : nodes)
      if (const int met = nodesMet(records, node, stage); met > 0 && met < measured) {
        runs[met].first.insert(printable(records.names->texts[stage], 200));
        runs[met].second.insert(node.name);
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
