// SPDX-License-Identifier: Apache-2.0
// See deferred.h.
#include "reports/fleet/deferred.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/fleet/fleet_waivers.h"
#include "reports/fleet/waiver_tally.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/bound.h"

namespace muster::fleet {
namespace {

/// One deferred verdict, and whose it is.
struct Entry {
  FleetNode* node;
  const DeferredSummary* verdict;
};

/// What one verdict came to.
struct Judged {
  Outcome outcome = Outcome::kError;
  std::string detail;
};

Judged judgeOne(const Expectation& e, const std::string& unit, const Result<Bound>& bound, double observed) {
  // With no peer at all a fleet of one device has nothing to compare with: it is told, and no pass.
  if (!bound.ok()) return {Outcome::kError, bound.error().message};
  const BoundDistance distance = distanceTo(*bound, observed);
  Judged judged;
  if (distance.met)
    judged.outcome = distance.margin < e.warnBand ? Outcome::kWarn : Outcome::kPass;
  else
    judged.outcome = e.severity == Severity::kWarn ? Outcome::kWarn : Outcome::kFail;
  if (judged.outcome != Outcome::kPass)
    judged.detail = fmt::format("{}, wanted {}", formatQuantity(observed, unit), bound->text);
  return judged;
}

/// Whether the node's state and reason come from this verdict.
bool settle(FleetNode& node, Outcome outcome, const std::string& detail) {
  --node.accounting.counts[static_cast<size_t>(Outcome::kDeferred)];
  ++node.accounting.counts[static_cast<size_t>(outcome)];
  const bool fails = outcome == Outcome::kFail && node.state != NodeState::kRejected;
  const bool open = outcome == Outcome::kError &&
                    (node.state == NodeState::kAccepted || node.state == NodeState::kAffected);
  if (!fails && !open) return false;
  node.state = fails ? NodeState::kRejected : NodeState::kIncomplete;
  node.reason = detail;
  return true;
}

}  // namespace

void judgeDeferred(const FleetRecords& records, Fleet& fleet) {
  // By text: numbers of keys depend on which record came first.
  const auto& names = (*records.names).deferred;
  std::map<std::pair<std::string, std::string>, std::vector<Entry>> groups;
  for (FleetNode& node : fleet.nodes)
    for (const size_t i : node.records)
      for (const DeferredSummary& verdict : records.nodes[i].deferred)
        groups[{node.sku, names.textOf(verdict.key)}].push_back({&node, &verdict});
  std::map<FleetNode*, size_t> more;  // fails that the reason does not name
  for (auto& [group, entries] : groups) {
    const uint32_t number = entries.front().verdict->key;
    const DeferredKey& key = names[number];
    Group measured;
    measured.metric = key.metric;
    measured.unit = key.expectation.unit;
    measured.direction = key.direction;
    Peers peers;
    for (const Entry& entry : entries) peers.values.push_back(entry.verdict->observed);
    const Result<Bound> bound = boundOf(key.expectation, measured, {}, peers);
    for (const Entry& entry : entries) {
      Judged judged = judgeOne(key.expectation, measured.unit, bound, entry.verdict->observed);
      if (const Waiver* waiver =
              waiveDeferred(key, *entry.node, entry.verdict->device, records, judged.outcome, fleet)) {
        judged.detail += waivedText(judged.outcome, *waiver);
        judged.outcome = Outcome::kWaived;
      }
      ++fleet.deferredCount;
      const std::string detail = fmt::format("{}{}: {}: {}", printable(key.stage),
                                             entry.verdict->device.empty() ? "" : " " + entry.verdict->device,
                                             printable(key.metric), judged.detail);
      if (!settle(*entry.node, judged.outcome, detail) && judged.outcome == Outcome::kFail)
        ++more[entry.node];
      if (judged.outcome != Outcome::kPass)
        fleet.deferred.push_back(
            {entry.node->name, entry.verdict->device, number, judged.outcome, judged.detail});
    }
  }
  for (const auto& [node, fails] : more)
    node->reason += fmt::format("; {} more failed beside the other nodes", fails);
  std::stable_sort(fleet.deferred.begin(), fleet.deferred.end(),
                   [&](const DeferredMiss& a, const DeferredMiss& b) {
                     return std::tie(a.outcome, a.node, a.device, names.textOf(a.key)) <
                            std::tie(b.outcome, b.node, b.device, names.textOf(b.key));
                   });
}

}  // namespace muster::fleet
