// SPDX-License-Identifier: Apache-2.0
// Evaluates fleet-relative expectations over all records.
#include "reports/fleet/assess/deferred.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "reports/fleet/assess/fleet_waivers.h"
#include "reports/fleet/assess/node_merge.h"
#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/read/waiver_tally.h"
#include "runner/core/majority.h"
#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/bound.h"

namespace muster::fleet {
namespace {

/// From so many nodes on, a single record cannot move their median beyond what the others measured.
constexpr size_t kFewestNodes = 3;

/// One deferred verdict, and whose it is.
struct Entry {
  FleetNode* node;
  const DeferredSummary* verdict;
  size_t record;
};

/// Result of one deferred verdict.
struct Judged {
  Outcome outcome = Outcome::kError;
  std::string detail;
  double margin = std::numeric_limits<double>::quiet_NaN();
};

/// The bounds of one group. Each node has one vote, the median of its devices, however many it names.
struct FleetBounds {
  size_t nodes = 0;
  std::vector<std::pair<double, const FleetNode*>> votes;  ///< sorted
  Result<Bound> bound;                                     ///< by all of them
  std::map<size_t, Result<Bound>> without;                 ///< by all but one of the two at either end
};

/// What one group is judged by.
struct Judging {
  const DeferredKey& key;
  const Group& measured;
  const FleetBounds& bounds;
};

/// The fleet's figure without one vote: the median, and of two that are left their geometric mean, as far
/// from the one as from the other.
Peers peersWithout(const std::vector<std::pair<double, const FleetNode*>>& votes, size_t without) {
  Peers peers;
  for (size_t i = 0; i < votes.size(); ++i)
    if (i != without) peers.values.push_back(votes[i].first);
  if (peers.values.size() != 2) return peers;
  const double low = peers.values[0], high = peers.values[1];
  peers.values.assign(kFewestNodes, low > 0 ? std::sqrt(low) * std::sqrt(high) : std::midpoint(low, high));
  return peers;
}

FleetBounds boundsOf(const DeferredKey& key, const Group& measured, const std::vector<Entry>& entries) {
  std::map<const FleetNode*, std::vector<double>> observed;
  for (const Entry& entry : entries) observed[entry.node].push_back(entry.verdict->observed);
  Peers peers;
  for (const auto& [node, values] : observed) peers.values.push_back(medianOf(values));
  if (observed.size() == 1) peers.values = observed.begin()->second;  // all that is compared is its own
  FleetBounds bounds{observed.size(), {}, boundOf(key.expectation, measured, {}, peers), {}};
  for (const auto& [node, values] : observed) bounds.votes.emplace_back(medianOf(values), node);
  std::sort(bounds.votes.begin(), bounds.votes.end());
  const size_t nodes = bounds.nodes;
  if (nodes < kFewestNodes) return bounds;
  for (const size_t without : {size_t{0}, size_t{1}, nodes - 2, nodes - 1})
    if (!bounds.without.contains(without))
      bounds.without.emplace(without,
                             boundOf(key.expectation, measured, {}, peersWithout(bounds.votes, without)));
  return bounds;
}

/// Whether a figure meets or misses the bound also without the record of any one other node. Leaving out the
/// highest or the lowest moves the median as far as leaving out any can.
bool isSameWithoutAnother(const Judging& of, const Entry& entry, bool met) {
  const auto& votes = of.bounds.votes;
  const size_t lowest = votes.front().second == entry.node ? 1 : 0;
  const size_t highest = votes.size() - (votes.back().second == entry.node ? 2 : 1);
  for (const size_t without : {lowest, highest}) {
    const Result<Bound>& bound = of.bounds.without.at(without);
    if (!bound.ok() || distanceTo(*bound, entry.verdict->observed).met != met) return false;
  }
  return true;
}

/// Why the record of one other node could be all that decides; empty: it is not. A node is rejected by what
/// it misses without that record too, and a slow one does not pass by a record that was forged to be as slow.
std::string whyUncertain(const Judging& of, const Entry& entry, bool met) {
  const size_t nodes = of.bounds.nodes;
  if (nodes == 1) return "no other node of its SKU was measured";
  if (!met && nodes == 2)
    return "two nodes differ, and nothing tells which of their records is right: three or more are needed";
  if (nodes < kFewestNodes || isSameWithoutAnother(of, entry, met)) return "";
  return fmt::format("too few nodes to say: without one of the other {} records it would {} the limit",
                     nodes - 1, met ? "miss" : "meet");
}

Judged judgeOne(const Judging& of, const Entry& entry) {
  const Expectation& e = of.key.expectation;
  const std::string& unit = of.measured.unit;
  const double observed = entry.verdict->observed;
  const Result<Bound>& bound = of.bounds.bound;
  if (!bound.ok()) return {Outcome::kError, bound.error().message};
  const BoundDistance distance = distanceTo(*bound, observed);
  if (const std::string why = whyUncertain(of, entry, distance.met); !why.empty())
    return {Outcome::kError,
            fmt::format("{}, required {}; {}", formatQuantity(observed, unit), bound->text, why)};
  Judged judged;
  judged.margin = distance.margin;
  if (distance.met)
    judged.outcome = distance.margin < e.warnBand ? Outcome::kWarn : Outcome::kPass;
  else
    judged.outcome = e.severity == Severity::kWarn ? Outcome::kWarn : Outcome::kFail;
  if (judged.outcome != Outcome::kPass)
    judged.detail = fmt::format("{}, required {}", formatQuantity(observed, unit), bound->text);
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

using Question = std::pair<std::string, std::string>;  ///< SKU and text
using Groups = std::map<Question, std::vector<Entry>>;

/// Why nobody of this group can be judged: other records answer the same question and say that it is the
/// other direction in which values are bad, and this group has no majority. Empty: it has.
std::string whyContradicted(const DeferredKey& key, const std::vector<Entry>& entries,
                            const std::set<const FleetNode*>& asked) {
  std::set<const FleetNode*> own;
  for (const Entry& entry : entries) own.insert(entry.node);
  return whyNoMajority(
      own.size(), asked.size(),
      fmt::format("the direction of {} is \"{}\"", printable(key.metric), directionName(key.direction)));
}

using Asked = std::map<Question, std::set<const FleetNode*>>;

/// The deferred verdicts of these records, by what they are compared with, in stages that ran there.
void collect(const FleetRecords& records, FleetNode& node, const std::vector<size_t>& of, bool counts,
             Groups& groups, Asked& asked) {
  // By text: numbers of keys depend on which record came first.
  const auto& names = (*records.names).deferred;
  const auto chosen = chosenStages(records, node);
  for (const size_t i : of)
    for (const DeferredSummary& verdict : records.nodes[i].deferred) {
      const auto stage = chosen.find(names[verdict.key].stage);
      if (stage == chosen.end() || (counts && stage->second.record != i)) continue;
      groups[{node.sku, names.textOf(verdict.key)}].push_back({&node, &verdict, i});
      if (counts) asked[{node.sku, names[verdict.key].question}].insert(&node);
    }
}

class DeferredJudge {
 public:
  DeferredJudge(const FleetRecords& records, FleetWaivers& waivers) : records_(records), waivers_(waivers) {
    for (const NodeSummary& record : records.nodes) verdicts_.outcomes.emplace_back(record.deferred.size());
  }

  DeferredVerdicts judge(FleetNodes& nodes) {
    own_ = ownWaivers(records_, nodes, waivers_);
    Groups groups, repeated;
    Asked asked;
    for (FleetNode& node : nodes) {
      collect(records_, node, node.records, true, groups, asked);
      collect(records_, node, node.repeated, false, repeated, asked);
    }
    for (const auto& [question, entries] : groups) {
      const auto again = repeated.find(question);
      judgeGroup(question.first, entries, again == repeated.end() ? std::vector<Entry>() : again->second,
                 asked);
    }
    for (const auto& [node, fails] : more_)
      node->reason += fmt::format("; {} more failed beside the other nodes", fails);
    const auto& names = records_.names->deferred;
    std::stable_sort(verdicts_.misses.begin(), verdicts_.misses.end(),
                     [&](const DeferredMiss& a, const DeferredMiss& b) {
                       return std::tie(a.outcome, a.node, a.device, names.textOf(a.key)) <
                              std::tie(b.outcome, b.node, b.device, names.textOf(b.key));
                     });
    return std::move(verdicts_);
  }

 private:
  void judgeGroup(const std::string& sku, const std::vector<Entry>& entries,
                  const std::vector<Entry>& repeated, const Asked& asked) {
    const DeferredKey& key = records_.names->deferred[entries.front().verdict->key];
    Group measured;
    measured.metric = key.metric;
    measured.unit = key.expectation.unit;
    measured.direction = key.direction;
    const FleetBounds bounds = boundsOf(key, measured, entries);
    const std::string contradicted = whyContradicted(key, entries, asked.at({sku, key.question}));
    const auto judgedUnder = [&](const Entry& entry, FleetWaivers& waivers) {
      Judged judged = contradicted.empty() ? judgeOne({key, measured, bounds}, entry)
                                           : Judged{Outcome::kError, contradicted};
      if (const Waiver* waiver = waiveDeferred(key, *entry.node, *entry.verdict, judged.outcome, records_,
                                               own_.at(entry.node), waivers)) {
        judged.detail += waivedText(judged.outcome, *waiver);
        judged.outcome = Outcome::kWaived;
      }
      return judged;
    };
    for (const Entry& entry : entries) take(key, entry, judgedUnder(entry, waivers_));
    FleetWaivers uncounted = repeated.empty() ? FleetWaivers() : waivers_;
    for (const Entry& entry : repeated) takeRepeated(key, entry, judgedUnder(entry, uncounted));
  }

  static std::string detailOf(const DeferredKey& key, const Entry& entry, const Judged& judged) {
    return fmt::format("{}{}: {}: {}", printable(key.stage),
                       entry.verdict->device.empty() ? "" : " " + entry.verdict->device,
                       printable(key.metric), judged.detail);
  }

  void keep(const Entry& entry, const Judged& judged) {
    const auto place = entry.verdict - records_.nodes[entry.record].deferred.data();
    verdicts_.outcomes[entry.record][static_cast<size_t>(place)] = {judged.outcome, judged.margin};
  }

  void take(const DeferredKey& key, const Entry& entry, const Judged& judged) {
    keep(entry, judged);
    ++verdicts_.judged;
    if (!settle(*entry.node, judged.outcome, detailOf(key, entry, judged)) &&
        judged.outcome == Outcome::kFail)
      ++more_[entry.node];
    if (judged.outcome != Outcome::kPass)
      verdicts_.misses.push_back(
          {entry.node->name, entry.verdict->device, entry.verdict->key, judged.outcome, judged.detail});
  }

  /// What a record missed that does not count is no result, but its node is not accepted by the next one.
  void takeRepeated(const DeferredKey& key, const Entry& entry, const Judged& judged) {
    keep(entry, judged);
    FleetNode& node = *entry.node;
    const bool failed = judged.outcome == Outcome::kFail;
    if (!failed && judged.outcome != Outcome::kError) return;
    const NodeState before = node.state;
    const std::string reason =
        fmt::format("{}, in {}: a repeated run does not replace it; after a repair, move the old record away",
                    detailOf(key, entry, judged), printable(records_.nodes[entry.record].path, 200));
    blockNode(node, failed ? NodeState::kRejected : NodeState::kIncomplete, reason);
    if (node.state != before)
      verdicts_.misses.push_back(
          {node.name, entry.verdict->device, entry.verdict->key, judged.outcome, reason});
  }

  const FleetRecords& records_;
  FleetWaivers& waivers_;
  OwnWaivers own_;
  DeferredVerdicts verdicts_;
  std::map<FleetNode*, size_t> more_;  ///< fails that the reason does not name
};

}  // namespace

DeferredVerdicts judgeDeferred(const FleetRecords& records, FleetWaivers& waivers, FleetNodes& nodes) {
  return DeferredJudge(records, waivers).judge(nodes);
}

}  // namespace muster::fleet
