// SPDX-License-Identifier: Apache-2.0
// See fleet_record.h: the steps from records to a fleet.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/fleet/assess/blame.h"
#include "reports/fleet/assess/coverage.h"
#include "reports/fleet/assess/deferred.h"
#include "reports/fleet/assess/expected_figures.h"
#include "reports/fleet/assess/fact_drift.h"
#include "reports/fleet/assess/findings.h"
#include "reports/fleet/assess/fleet_waivers.h"
#include "reports/fleet/assess/node_merge.h"
#include "reports/fleet/assess/suspects.h"
#include "reports/fleet/check/identity.h"
#include "reports/fleet/check/rejudged.h"
#include "reports/fleet/check/sku_check.h"
#include "reports/fleet/fleet_record.h"
#include "runner/core/files.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

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

/// What all nodes of a group measured together is in the record of its first node alone. Without that record
/// nobody has judged it, whatever the others say.
void findUnreported(const FleetRecords& records, Fleet& fleet) {
  std::map<std::string, bool> reported;  // group -> whether its first node's record counts
  for (const FleetNode& node : fleet.nodes)
    for (const size_t i : node.records)
      for (const StageSummary& stage : records.nodes[i].stages) {
        if (stage.state != StageState::kRan || stage.groupNodes < 2) continue;
        reported[fmt::format("stage {} of {} nodes", records.names->texts[stage.name], stage.groupNodes)] |=
            records.nodes[i].nodeRank == 0;
      }
  for (const auto& [group, found] : reported)
    if (!found)
      fleet.reasons.push_back(printable(group, 200) +
                              ": no record of its first node, which holds the results of the whole group");
}

}  // namespace

Result<Fleet> assess(FleetRecords& records, const FleetOptions& options) {
  Fleet fleet;
  fleet.expectedFrom = options.expectedFrom;
  fleet.topologyFrom = options.topologyFrom;
  fleet.notes = options.notes;
  MUSTER_CHECK_OK(cover(records, options, fleet));
  const BlameTable blame(records, fleet, options.clusterNodes);
  clearTheAffected(records, blame, fleet);
  checkBlame(records, blame, fleet);
  fleet.sameMachine = options.sameMachine;
  fleet.allowRejudged = options.allowRejudged;
  checkRejudged(records, options, fleet);
  checkIdentities(records, options, fleet);
  checkSkus(records, options, fleet);
  checkLimits(records, options, fleet);
  fleet.waiversFrom = options.waiversFrom;
  fleet.waiversSha256 = options.waiversSha256;
  countWaivers(records, fleet);
  judgeDeferred(records, fleet);
  for (PeerTable& table : peerTables(records, fleet)) {
    addExpected(table, records, options, fleet);
    MUSTER_CHECK_OK(addOutliers(table, records, options, fleet));
    std::vector<Distribution> distributions = distributionsOf(table, records);
    addWorstShares(table, distributions, fleet);
    std::move(distributions.begin(), distributions.end(), std::back_inserter(fleet.distributions));
  }
  addFailures(records, blame, fleet);
  orderSuspects(fleet);
  foldSlowNodes(fleet);
  addCommonCauses(options, fleet);
  orderSuspects(fleet);
  markTheNamed(fleet);
  fleet.drift = findFactDrift(records, fleet);
  countFleet(records, fleet);
  settleWaivers(records, fleet);
  describe(records, fleet);
  if (!options.manyRuns) findUnreported(records, fleet);
  MUSTER_CHECK_OK(decideFleet(fleet));
  return fleet;
}

}  // namespace muster::fleet
