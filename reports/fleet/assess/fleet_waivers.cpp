// SPDX-License-Identifier: Apache-2.0
// Determines what each waiver of a fleet covers, and which are unused.
#include "reports/fleet/assess/fleet_waivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/read/waiver_tally.h"
#include "runner/core/clock.h"
#include "runner/core/majority.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

void add(WaiverCount& sum, const WaiverCount& part) {
  sum.concerns = sum.concerns || part.concerns;
  sum.ran = sum.ran || part.ran;
  sum.sawMetric = sum.sawMetric || part.sawMetric;
  sum.sawDevice = sum.sawDevice || part.sawDevice;
  sum.matched += part.matched;
  sum.covered += part.covered;
  sum.passed += part.passed;
  sum.errors += part.errors;
}

const std::string& serialOf(const FleetRecords& records, const FleetNode& node, const std::string& device) {
  static const std::string kNone;
  for (const size_t i : node.records)
    for (const DeviceIdentity& known : records.nodes[i].devices)
      if (known.id == device) return known.serial;
  return kNone;
}

/// What became of one waiver, and why nothing matched it.
class Settling {
 public:
  Settling(const FleetRecords& records, const FleetNodes& nodes) {
    std::set<uint32_t> stages;
    for (const FleetNode& node : nodes) {
      (node.records.empty() ? without_ : with_).push_back(node.name);
      for (const size_t i : node.records)
        for (const StageSummary& stage : records.nodes[i].stages) stages.insert(stage.name);
    }
    for (const uint32_t stage : stages) stageNames_.push_back(records.names->texts[stage]);
    std::sort(stageNames_.begin(), stageNames_.end());
  }

  void settle(FleetWaiver& entry) {
    const WaiverCount& count = entry.count;
    if (count.covered > 0) {
      entry.state = WaiverState::kApplied;
      entry.detail = fmt::format("covers {} failure{} on {}", count.covered, count.covered == 1 ? "" : "s",
                                 join(entry.nodes, ", "));
    } else if (count.passed > 0 && count.passed == count.matched && count.errors == 0) {
      entry.state = WaiverState::kUnexpectedPass;
      entry.detail = "everything it names met its limits; remove or narrow it";
    } else if (!count.concerns) {
      strangers(entry);
    } else if (count.matched > 0 || count.errors > 0 || !count.ran) {
      undecided(entry);
    } else {
      entry.state = WaiverState::kUnmatched;
      entry.detail = !count.sawMetric ? fmt::format("{} did not check {} there", stageText(entry.waiver),
                                                    entry.waiver.metric)
                     : !entry.waiver.device.empty() && !count.sawDevice
                         ? fmt::format("no such device: {}", entry.waiver.device)
                         : "no check result there matches all its labels";
    }
  }

 private:
  static std::string stageText(const Waiver& waiver) {
    return waiver.stage.empty() ? "its stages" : "stage " + waiver.stage;
  }

  /// It is about no node that has a record.
  void strangers(FleetWaiver& entry) {
    const std::string& node = entry.waiver.node;
    entry.state = WaiverState::kUnmatched;
    if (node.empty())
      entry.detail =
          fmt::format("no device of the fleet has serial {}: was it replaced?", entry.waiver.serial);
    else if (std::find(without_.begin(), without_.end(), node) == without_.end())
      entry.detail = fmt::format("node {} is not expected{}", node, suggester_.didYouMean(node, with_));
    else
      entry.state = WaiverState::kUndecided, entry.detail = fmt::format("node {} has no record", node);
  }

  void undecided(FleetWaiver& entry) {
    const std::string& stage = entry.waiver.stage;
    entry.state = WaiverState::kUndecided;
    if (entry.count.errors > 0) {
      entry.detail = "it names a metric without a result, which a waiver cannot cover";
    } else if (entry.count.ran) {
      entry.detail = "the metric it names was not checked";
    } else if (stage.empty() || std::binary_search(stageNames_.begin(), stageNames_.end(), stage)) {
      entry.detail = fmt::format("{} did not run there", stageText(entry.waiver));
    } else {
      entry.state = WaiverState::kUnmatched;
      entry.detail =
          fmt::format("no record has a stage {}{}", stage, suggester_.didYouMean(stage, stageNames_));
    }
  }

  std::vector<std::string> with_, without_;  ///< nodes with and without a record that counts
  std::vector<std::string> stageNames_;
  Suggester suggester_;
};

void sayNode(FleetWaiver& entry, const std::string& node) {
  if (entry.nodes.size() < kMostNamed &&
      std::find(entry.nodes.begin(), entry.nodes.end(), node) == entry.nodes.end())
    entry.nodes.push_back(node);
}

}  // namespace

FleetWaivers countWaivers(const FleetRecords& records, const FleetNodes& nodes) {
  const FleetNames& names = *records.names;
  std::map<uint32_t, FleetWaiver> all;
  for (uint32_t i = 0; i < names.givenWaivers.size(); ++i) all[i].given = true;
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records)
      for (const WaiverCount& count : records.nodes[i].waivers) {
        FleetWaiver& entry = all[count.waiver];
        add(entry.count, count);
        if (count.covered > 0) sayNode(entry, node.name);
      }
  FleetWaivers waivers;
  for (auto& [number, entry] : all) {
    entry.waiver = names.waivers[number];
    entry.number = number;
    waivers.push_back(std::move(entry));
  }
  // Those of the file in its order, then the records' own: their numbers depend on the reading threads.
  std::stable_sort(waivers.begin() + static_cast<std::ptrdiff_t>(names.givenWaivers.size()), waivers.end(),
                   [](const FleetWaiver& a, const FleetWaiver& b) {
                     return std::pair(a.waiver.text(), a.waiver.reason) <
                            std::pair(b.waiver.text(), b.waiver.reason);
                   });
  return waivers;
}

OwnWaivers ownWaivers(const FleetRecords& records, const FleetNodes& nodes, const FleetWaivers& waivers) {
  std::vector<size_t> given;
  std::unordered_map<uint32_t, size_t> places;
  for (size_t i = 0; i < waivers.size(); ++i) {
    if (waivers[i].given) given.push_back(i);
    places.emplace(waivers[i].number, i);
  }
  OwnWaivers own;
  for (const FleetNode& node : nodes) {
    std::set<size_t> all(given.begin(), given.end());
    for (const size_t i : node.records)
      for (const WaiverCount& count : records.nodes[i].waivers)
        if (count.concerns) all.insert(places.at(count.waiver));
    own[&node].assign(all.begin(), all.end());
  }
  return own;
}

const Waiver* waiveDeferred(const DeferredKey& key, const FleetNode& node, const DeferredSummary& verdict,
                            Outcome outcome, const FleetRecords& records, const std::vector<size_t>& own,
                            FleetWaivers& waivers) {
  if (own.empty()) return nullptr;
  const WaiverTarget target = {
      node.name, key.stage, key.metric, verdict.device, serialOf(records, node, verdict.device), key.labels};
  const Waiver* covering = nullptr;
  for (const size_t place : own) {
    FleetWaiver& entry = waivers[place];
    if (!covers(entry.waiver, target)) continue;
    // Its record has matched it already, without its outcome.
    if (entry.given) --entry.count.matched;
    if (!countFor(entry.waiver, outcome, target, entry.count)) continue;
    sayNode(entry, node.name);
    if (covering == nullptr) covering = &entry.waiver;
  }
  return covering;
}

namespace {

/// Whether only few records name a waiver that matches nothing; their nodes are incomplete then, and the
/// others not for what these say.
bool isOfFew(const FleetWaiver& entry, const std::set<FleetNode*>& own, size_t withRecord) {
  if (isMajority(own.size(), withRecord)) return false;
  for (FleetNode* node : own)
    blockNode(*node, NodeState::kIncomplete,
              fmt::format("its record has a waiver ({}) that matches nothing in the fleet",
                          printable(entry.waiver.text(), 200)));
  return true;
}

}  // namespace

size_t settleWaivers(const FleetRecords& records, FleetNodes& nodes, FleetWaivers& waivers) {
  Settling settling(records, nodes);
  std::unordered_map<uint32_t, std::set<FleetNode*>> naming;  // by waiver, the nodes whose records name it
  size_t unmatched = 0, withRecord = 0;
  for (FleetNode& node : nodes) {
    if (!node.records.empty()) ++withRecord;
    for (const size_t i : node.records)
      for (const WaiverCount& count : records.nodes[i].waivers) naming[count.waiver].insert(&node);
  }
  for (FleetWaiver& entry : waivers) {
    settling.settle(entry);
    if (entry.state != WaiverState::kUnmatched) continue;
    // Its node's own record holds this error, where it is about a node at all.
    if (!entry.given && entry.count.concerns) continue;
    if (entry.given || !isOfFew(entry, naming[entry.number], withRecord)) ++unmatched;
  }
  return unmatched;
}

std::vector<std::string> expiredWaivers(const FleetWaivers& waivers, double at) {
  const std::string today = formatUtc(at).substr(0, std::string_view("2026-12-31").size());
  std::vector<std::string> reasons;
  std::set<std::string> given;
  for (const FleetWaiver& entry : waivers)
    if (entry.given) given.insert(entry.waiver.text());
  for (const FleetWaiver& entry : waivers) {
    if (entry.given || entry.count.covered == 0 || entry.waiver.expires >= today ||
        given.contains(entry.waiver.text()))
      continue;
    reasons.push_back(fmt::format(
        "the waiver under which {} ran ({}) expired on {}, and the fleet was judged on {}: renew it with "
        "--waivers, or fix what it covers",
        join(entry.nodes, ", "), printable(entry.waiver.text(), 200), entry.waiver.expires, today));
  }
  return reasons;
}

}  // namespace muster::fleet
