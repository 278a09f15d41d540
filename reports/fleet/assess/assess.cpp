// SPDX-License-Identifier: Apache-2.0
// See fleet_record.h: the steps from records to a fleet, each with what it takes and what it finds.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "reports/fleet/assess/blame.h"
#include "reports/fleet/assess/cluster_stages.h"
#include "reports/fleet/assess/coverage.h"
#include "reports/fleet/assess/deferred.h"
#include "reports/fleet/assess/fact_drift.h"
#include "reports/fleet/assess/findings.h"
#include "reports/fleet/assess/fleet_waivers.h"
#include "reports/fleet/assess/incidents.h"
#include "reports/fleet/assess/links.h"
#include "reports/fleet/assess/node_merge.h"
#include "reports/fleet/assess/suspects.h"
#include "reports/fleet/check/identity.h"
#include "reports/fleet/check/rejudged.h"
#include "reports/fleet/check/sku_check.h"
#include "reports/fleet/decision.h"
#include "reports/fleet/fleet_record.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"
#include "runner/system/files.h"

namespace muster::fleet {
namespace {

/// The checks of records, one after the other; their findings stand in this order.
RecordChecks checkRecords(const FleetRecords& records, const FleetOptions& options, const FleetRun& run,
                          const BlameTable& blame, FleetNodes& nodes) {
  RecordChecks all;
  const auto add = [&](RecordChecks part) {
    std::move(part.findings.begin(), part.findings.end(), std::back_inserter(all.findings));
    std::move(part.notes.begin(), part.notes.end(), std::back_inserter(all.notes));
    all.rejudged += part.rejudged;
  };
  if (!options.manyRuns) add(checkRanks(records, nodes));
  add(checkBlame(records, blame, nodes));
  add(checkRejudged(records, options, nodes));
  add(checkIdentities(records, options, run, nodes));
  add(checkSkus(records, options, run, nodes));
  add(checkLimits(records, options, nodes));
  return all;
}

/// All suspects as one list: what peers and limits name, then the causes that these have in common.
OrderedSuspects listSuspects(std::vector<Suspect> byPeers, std::vector<Suspect> failures,
                             const FleetRecords& records, const FleetOptions& options, FleetNodes& nodes) {
  std::move(failures.begin(), failures.end(), std::back_inserter(byPeers));
  OrderedSuspects single = orderSuspects(std::move(byPeers), nodes);
  std::vector<Suspect> all = foldSlowNodes(foldLinks(std::move(single.list), records, nodes), nodes);
  std::vector<Suspect> common = findCommonCauses(all, options.topology, nodes);
  std::move(common.begin(), common.end(), std::back_inserter(all));
  OrderedSuspects ordered = orderSuspects(std::move(all), nodes);
  ordered.left += single.left;
  return ordered;
}

/// The span of the run, and one digest over all that was judged.
void describe(const FleetRecords& records, Fleet& fleet) {
  std::string digests;
  bool first = true;
  for (const FleetNode& node : fleet.nodes)
    for (const size_t i : node.records) {
      const NodeSummary& record = records.nodes[i];
      fleet.started = first ? record.started : std::min(fleet.started, record.started);
      fleet.finished = first ? record.finished : std::max(fleet.finished, record.finished);
      first = false;
      digests += record.sha256 + "\n";
    }
  fleet.recordsSha256 = sha256Hex(digests);
}

/// The first ones; of thousands nobody reads the rest.
void listQuarantined(const FleetRecords& records, Fleet& fleet) {
  const std::vector<Quarantined>& all = records.quarantined;
  const size_t listed = std::min(all.size(), kMostQuarantined);
  fleet.quarantined.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(listed));
  if (listed < all.size())
    fleet.notes.push_back(
        fmt::format("{} records could not be used; the first {} are listed", all.size(), listed));
}

/// What all nodes of a group measured together is in the record of its first node alone. Without that record
/// nobody has judged it, whatever the others say.
std::vector<std::string> unreportedGroups(const FleetRecords& records, const FleetNodes& nodes) {
  const std::set<uint32_t> overNodes = clusterStages(records, nodes);
  std::map<std::string, bool> reported;  // group -> whether its first node's record counts
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records)
      for (const StageSummary& stage : records.nodes[i].stages) {
        if (stage.state != StageState::kRan || stage.groupNodes < 2 || !overNodes.contains(stage.name))
          continue;
        reported[fmt::format("stage {} of {} nodes", records.names->texts[stage.name], stage.groupNodes)] |=
            records.nodes[i].nodeRank == 0;
      }
  std::vector<std::string> reasons;
  for (const auto& [group, found] : reported)
    if (!found)
      reasons.push_back(printable(group, 200) +
                        ": no record of its first node, which holds the results of the whole group");
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

/// The rack of each node: of the groups that hold it the smallest one.
void placeNodes(const Topology& topology, FleetNodes& nodes) {
  std::map<std::string, FleetNode*> named;
  for (FleetNode& node : nodes) named.emplace(node.name, &node);
  std::map<const FleetNode*, size_t> sizes;
  for (const auto& [group, members] : topology)
    for (size_t i = 0; i < members.size(); ++i) {
      const auto at = named.find(members[i]);
      if (at == named.end()) continue;
      const auto [size, fresh] = sizes.try_emplace(at->second, members.size());
      if (!fresh && size->second <= members.size()) continue;
      size->second = members.size();
      at->second->rack = group;
      at->second->slot = i + 1;
    }
}

}  // namespace

Result<Fleet> assess(const FleetRecords& records, const FleetOptions& options) {
  // Each step takes what the steps before it found. The nodes are common to all: a step that may change what
  // becomes of a node takes them as they are by then, and not as const.
  MUSTER_TRY(Coverage covered, cover(records, options));
  FleetNodes& nodes = covered.nodes;
  const BlameTable blame(records, nodes, options.clusterNodes, options.manyRuns);
  clearTheAffected(records, blame, nodes);
  RecordChecks checks = checkRecords(records, options, covered.run, blame, nodes);
  FleetWaivers waivers = countWaivers(records, nodes);
  DeferredVerdicts deferred = judgeDeferred(records, waivers, nodes);
  MUSTER_TRY(PeerComparison peers, comparePeers(records, options, nodes));
  OrderedSuspects suspects = listSuspects(
      std::move(peers.suspects), findFailures(records, blame, deferred, nodes), records, options, nodes);
  markTheNamed(suspects.list, nodes);
  FleetCount count = countFleet(records, nodes);

  Fleet fleet;
  static_cast<FleetRun&>(fleet) = std::move(covered.run);
  fleet.expectedFrom = options.expectedFrom;
  fleet.topologyFrom = options.topologyFrom;
  fleet.sameMachine = options.sameMachine;
  fleet.rejectOutliers = options.rejectOutliers;
  fleet.allowRejudged = options.allowRejudged;
  fleet.waiversFrom = options.waiversFrom;
  fleet.waiversSha256 = options.waiversSha256;
  fleet.duplicates = std::move(covered.duplicates);
  fleet.stale = std::move(covered.stale);
  fleet.foreign = std::move(covered.foreign);
  fleet.withoutRecord = std::move(covered.withoutRecord);
  listQuarantined(records, fleet);
  fleet.findings = std::move(checks.findings);
  std::move(peers.findings.begin(), peers.findings.end(), std::back_inserter(fleet.findings));
  fleet.rejudged = checks.rejudged;
  fleet.deferredCount = deferred.judged;
  fleet.deferred = std::move(deferred.misses);
  fleet.deferredOutcomes = std::move(deferred.outcomes);
  fleet.distributions = std::move(peers.distributions);
  fleet.keyFigures = std::move(peers.keyFigures);
  fleet.suspects = std::move(suspects.list);
  fleet.suspectsLeft = suspects.left;
  fleet.drift = findFactDrift(records, nodes);
  fleet.accounting = count.accounting;
  fleet.groups = std::move(count.groups);
  fleet.waiversUnmatched = settleWaivers(records, nodes, waivers);
  fleet.accounting.expected += fleet.waiversUnmatched;
  fleet.accounting.counts[static_cast<size_t>(Outcome::kError)] += fleet.waiversUnmatched;
  for (std::string& reason : expiredWaivers(waivers, options.at)) fleet.reasons.push_back(std::move(reason));
  fleet.waivers = std::move(waivers);
  // Records of several runs that met others are what the operator asked for.
  for (auto& [size, text] : separateRuns(records, nodes))
    (size == 1 || !options.manyRuns ? fleet.reasons : fleet.notes).push_back(std::move(text));
  if (!options.manyRuns)
    for (std::vector<std::string> more :
         {unreportedGroups(records, nodes), missingGroups(records, nodes), mixedGroups(records, nodes)})
      std::move(more.begin(), more.end(), std::back_inserter(fleet.reasons));
  fleet.notes.insert(fleet.notes.end(), options.notes.begin(), options.notes.end());
  for (std::vector<std::string>* notes : {&covered.notes, &checks.notes, &peers.notes})
    std::move(notes->begin(), notes->end(), std::back_inserter(fleet.notes));
  fleet.nodes = std::move(nodes);
  describe(records, fleet);
  MUSTER_CHECK_OK(decide(fleet));
  placeNodes(options.topology, fleet.nodes);
  fleet.incidents = findIncidents(fleet);
  return fleet;
}

}  // namespace muster::fleet
