// SPDX-License-Identifier: Apache-2.0
// See fleet_record.h: the steps from records to a fleet, each with what it takes and what it finds.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "reports/fleet/assess/coverage.h"
#include "reports/fleet/assess/deferred.h"
#include "reports/fleet/assess/fact_drift.h"
#include "reports/fleet/assess/fleet_waivers.h"
#include "reports/fleet/assess/incidents.h"
#include "reports/fleet/assess/node_merge.h"
#include "reports/fleet/assess/suspects.h"
#include "reports/fleet/blame/blame.h"
#include "reports/fleet/blame/cluster_stages.h"
#include "reports/fleet/blame/findings.h"
#include "reports/fleet/blame/links.h"
#include "reports/fleet/blame/run_table.h"
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
                          const RunTable& runs, const BlameTable& blame, FleetNodes& nodes) {
  RecordChecks all;
  const auto add = [&](RecordChecks part) {
    std::move(part.findings.begin(), part.findings.end(), std::back_inserter(all.findings));
    std::move(part.notes.begin(), part.notes.end(), std::back_inserter(all.notes));
    all.rejudged += part.rejudged;
  };
  add(runs.check(nodes));
  add(checkBlame(records, blame, nodes));
  add(checkRejudged(records, options, nodes));
  add(checkIdentities(records, options, run, nodes));
  add(checkSkus(records, options, run, nodes));
  add(checkLimits(records, options, nodes));
  return all;
}

/// All suspects as one list: what peers and limits name, then the causes that these have in common.
OrderedSuspects listSuspects(std::vector<Suspect> byPeers, FailureFindings failures,
                             const FleetRecords& records, const FleetOptions& options, FleetNodes& nodes) {
  std::move(failures.list.begin(), failures.list.end(), std::back_inserter(byPeers));
  OrderedSuspects single = orderSuspects(std::move(byPeers), nodes);
  std::vector<Suspect> all = foldSlowNodes(foldLinks(std::move(single.list), records, nodes), nodes);
  std::vector<Suspect> common = findCommonCauses(all, records, options.topology, nodes);
  std::move(common.begin(), common.end(), std::back_inserter(all));
  OrderedSuspects ordered = orderSuspects(std::move(all), nodes);
  ordered.left += single.left + failures.left;
  return ordered;
}

/// Outliers are found among the records that count: what one of those that were repeated would be, nobody
/// knows.
void blockRepeated(const FleetRecords& records, FleetNodes& nodes) {
  for (FleetNode& node : nodes)
    if (!node.repeated.empty())
      blockNode(
          node, NodeState::kIncomplete,
          fmt::format(
              "it ran more than once, and {} was not compared with the other nodes (--reject-outliers): "
              "move it away after a repair",
              printable(records.nodes[node.repeated.front()].path, 200)));
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
  const RunTable runs(records, nodes, options.manyRuns);
  const BlameTable blame(records, runs, nodes, options.clusterNodes);
  clearTheAffected(records, blame, nodes);
  RecordChecks checks = checkRecords(records, options, covered.run, runs, blame, nodes);
  FleetWaivers waivers = countWaivers(records, nodes);
  DeferredVerdicts deferred = judgeDeferred(records, waivers, nodes);
  MUSTER_TRY(PeerComparison peers, comparePeers(records, options, nodes));
  OrderedSuspects suspects =
      listSuspects(std::move(peers.suspects), findFailures(records, runs, blame, deferred, nodes), records,
                   options, nodes);
  markTheNamed(records, suspects.list, nodes);
  cutTo(kMostSuspects, suspects);
  if (options.rejectOutliers) blockRepeated(records, nodes);
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
  GroupGaps gaps = findGroupGaps(records, options, nodes);
  std::move(gaps.reasons.begin(), gaps.reasons.end(), std::back_inserter(fleet.reasons));
  std::move(gaps.notes.begin(), gaps.notes.end(), std::back_inserter(fleet.notes));
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
