// SPDX-License-Identifier: Apache-2.0
// See suspects.h.
#include "reports/fleet/suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/fleet/culprit.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

constexpr const char* kKindNames[] = {"group", "switch", "rail", "node", "link", "device"};

const NodeSummary* recordOf(const FleetRecords& records, const FleetNode& node) {
  return node.records.empty() ? nullptr : &records.nodes[node.records.front()];
}

void addEvidence(Suspect& suspect, const std::string& line) {
  if (suspect.evidence.size() < kMostEvidence &&
      std::find(suspect.evidence.begin(), suspect.evidence.end(), line) == suspect.evidence.end())
    suspect.evidence.push_back(line);
}

/// Log of the binomial chance of `hits` or more among `n` at rate `p`, by Chernoff's bound.
double chance(size_t hits, size_t n, double p) {
  const double q = static_cast<double>(hits) / static_cast<double>(n);
  if (q <= p) return 1;
  const double a = q * std::log(q / p);
  const double b = q < 1 ? (1 - q) * std::log((1 - q) / (1 - p)) : 0;
  return std::exp(-static_cast<double>(n) * (a + b));
}

constexpr double kRareEnough = 1e-4;
constexpr size_t kFewestHits = 3;

/// Whether `hits` of `n` members are far more than `all` of `fleet` would give.
bool isCommon(size_t hits, size_t n, size_t outside, size_t outsideSize) {
  if (hits < kFewestHits || 2 * hits < n) return false;
  // The rate elsewhere, and never zero: one more hit is always thinkable.
  const double rate = (static_cast<double>(outside) + 1) / (static_cast<double>(outsideSize) + 2);
  return chance(hits, n, std::min(rate, 0.5)) < kRareEnough;
}

bool isFailure(const DeviationSummary& d) {
  return d.outcome == Outcome::kFail || d.outcome == Outcome::kFlaky || d.outcome == Outcome::kError;
}

/// Who answers for an outlier, where waivers cover every metric that it is odd in; else an empty text.
std::string waivedBy(const PeerTable& table, const Outlier& outlier, const Suspect& suspect,
                     const FleetRecords& records) {
  const FleetNames& names = *records.names;
  if (names.givenWaivers.empty()) return "";
  const Waiver* waiver = nullptr;
  for (const PeerEvidence& one : outlier.evidence) {
    const FigureKey& key = names.figures[table.keys[one.metric]];
    waiver = coveringWaiver(names.givenWaivers,
                            {suspect.node, key.stage, key.metric, suspect.what, suspect.serial, key.labels});
    if (waiver == nullptr) return "";
  }
  if (waiver == nullptr) return "";
  return fmt::format("waived: {} (approved by {}, until {})", waiver->reason, waiver->approver,
                     waiver->expires);
}

/// Whether all nodes run the stage as one group.
bool isGroupStage(const FleetRecords& records, const std::string& stage) {
  return std::any_of(records.nodes.begin(), records.nodes.end(), [&](const NodeSummary& node) {
    return std::any_of(node.stages.begin(), node.stages.end(), [&](const StageSummary& one) {
      return one.scope == "cluster" && records.names->texts[one.name] == stage;
    });
  });
}

/// What most nodes fail: then the fleet as a whole is off, and naming each device would hide that. Not so
/// where it is the same place on all of them: that is a rail.
class Widespread {
 public:
  Widespread(const FleetRecords& records, const Fleet& fleet) : records_(records) {
    for (const FleetNode& node : fleet.nodes) {
      std::map<Key, const DeviationSummary*> failed;
      for (const size_t i : node.records)
        for (const DeviationSummary& d : records.nodes[i].deviations)
          if (isFailure(d)) {
            failed.emplace(keyOf(d), &d);
            places_[keyOf(d)].insert(d.device);
          }
      measured_ += node.records.empty() ? 0 : 1;
      devices_ = std::max(devices_, node.devices);
      for (const auto& [key, d] : failed) {
        Hits& hits = hits_[key];
        if (hits.nodes++ == 0) hits.example = {node.name, d};
      }
    }
  }
  [[nodiscard]] bool covers(const DeviationSummary& d) const { return isWide(keyOf(d), hits_.at(keyOf(d))); }

  void addTo(Fleet& fleet) const {
    for (const auto& [key, hits] : hits_) {
      if (!isWide(key, hits)) continue;
      const DeviationSummary& d = *hits.example.second;
      Suspect suspect;
      suspect.kind = SuspectKind::kGroup;
      suspect.what =
          printable(std::get<0>(key)) + (std::get<1>(key).empty() ? "" : ", " + printable(std::get<1>(key)));
      const bool together = isGroupStage(records_, std::get<0>(key));
      suspect.evidence.push_back(fmt::format(
          "{} of {} nodes do not pass it, {}; on {}: {}", hits.nodes, measured_,
          together ? "which run it together, so a single rank or link may have spoilt it for all of them"
                   : "so it is no matter of single devices",
          hits.example.first, deviationLine(d, *records_.names)));
      suspect.next = together
                         ? d.remedy
                         : "Look for what all nodes share: driver, BIOS and power settings, cooling, the "
                           "image, the plan's limits. " +
                               d.remedy;
      fleet.suspects.push_back(std::move(suspect));
    }
  }

 private:
  using Key = std::tuple<std::string, std::string, Outcome>;  ///< stage, metric: by text, for the order
  struct Hits {
    size_t nodes = 0;
    std::pair<std::string, const DeviationSummary*> example;
  };
  [[nodiscard]] Key keyOf(const DeviationSummary& d) const {
    return {records_.names->texts[d.stage], records_.names->texts[d.metric], d.outcome};
  }
  [[nodiscard]] bool isWide(const Key& key, const Hits& hits) const {
    const std::set<std::string>& places = places_.at(key);
    const bool onePlace = devices_ > 1 && places.size() == 1 && !places.begin()->empty();
    return hits.nodes >= kFewestHits && 2 * hits.nodes > measured_ && !onePlace;
  }

  const FleetRecords& records_;
  size_t measured_ = 0;
  size_t devices_ = 0;  ///< of the node that has most
  std::map<Key, Hits> hits_;
  std::map<Key, std::set<std::string>> places_;  ///< devices that fail it
};

}  // namespace

const char* suspectKindName(SuspectKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

Status addOutliers(const PeerTable& table, const FleetRecords& records, const FleetOptions& options,
                   Fleet& fleet) {
  MUSTER_TRY(const PeerFindings findings, findOutliers(table.group));
  for (const std::string& note : findings.notes)
    fleet.notes.push_back(
        fmt::format("{}{}: {}", table.group.name, table.nodeWide ? ", figures of whole nodes" : "", note));
  for (Outlier outlier : findings.outliers) {
    if (table.nodeWide && outlier.level == PeerLevel::kDevice) outlier.level = PeerLevel::kNode;
    Suspect suspect;
    suspect.byPeers = true;
    suspect.evidence.push_back(outlierText(table.group, outlier));
    suspect.kind = outlier.level == PeerLevel::kGroup  ? SuspectKind::kGroup
                   : outlier.level == PeerLevel::kNode ? SuspectKind::kNode
                                                       : SuspectKind::kDevice;
    if (outlier.level == PeerLevel::kGroup) {
      suspect.what = table.group.name;
      suspect.next =
          "Every device of the fleet is behind its profile: look for what all nodes share before single ones";
      fleet.suspects.push_back(std::move(suspect));
      continue;
    }
    FleetNode& node = fleet.nodes[table.nodes[outlier.node]];
    suspect.node = node.name;
    if (outlier.level == PeerLevel::kDevice) {
      suspect.what = table.group.nodes[outlier.node].devices[outlier.device];
      suspect.serial = serialOf(recordOf(records, node), suspect.what);
    }
    suspect.next =
        fmt::format("Run the plan on {} again; if it stays so, {}", node.name,
                    suspect.what.empty() ? "compare its configuration, cooling and power with its peers'"
                                         : "swap the device's position, then replace it");
    const std::string waived = waivedBy(table, outlier, suspect, records);
    if (!waived.empty()) suspect.evidence.push_back(waived);
    if (options.rejectOutliers && waived.empty() && node.state != NodeState::kRejected) {
      node.state = NodeState::kRejected;
      node.reason = "named by its peers: " + suspect.evidence.front();
    }
    fleet.suspects.push_back(std::move(suspect));
  }
  return {};
}

namespace {

/// Nodes most of whose devices miss the same limit relative to the fleet: then the node is off, not each
/// device.
std::set<std::pair<std::string, uint32_t>> deferredOfWholeNodes(const Fleet& fleet) {
  std::map<std::pair<std::string, uint32_t>, std::set<std::string>> devices;
  for (const DeferredMiss& miss : fleet.deferred)
    if (miss.outcome == Outcome::kFail && !miss.device.empty())
      devices[{miss.node, miss.key}].insert(miss.device);
  std::set<std::pair<std::string, uint32_t>> whole;
  for (const FleetNode& node : fleet.nodes)
    for (auto it = devices.lower_bound({node.name, 0}); it != devices.end() && it->first.first == node.name;
         ++it)
      if (it->second.size() >= kWholeNode && 2 * it->second.size() > node.devices) whole.insert(it->first);
  return whole;
}

}  // namespace

void addFailures(const FleetRecords& records, Fleet& fleet) {
  const Widespread widespread(records, fleet);
  widespread.addTo(fleet);
  for (const FleetNode& node : fleet.nodes)
    for (const size_t i : node.records) {
      const NodeSummary& record = records.nodes[i];
      std::vector<const DeviationSummary*> failures;
      for (const DeviationSummary& d : record.deviations)
        if (isFailure(d) && !widespread.covers(d)) failures.push_back(&d);
      for (Suspect& suspect : takeWholeNode(failures, node, *records.names))
        fleet.suspects.push_back(std::move(suspect));
      for (const DeviationSummary* d : failures) {
        Suspect suspect = culpritOf(*d, record);
        suspect.evidence.push_back(deviationLine(*d, *records.names));
        suspect.next = remedyOf(*d);
        fleet.suspects.push_back(std::move(suspect));
      }
    }
  const auto wholeNodes = deferredOfWholeNodes(fleet);
  for (const DeferredMiss& miss : fleet.deferred) {
    if (miss.outcome != Outcome::kFail) continue;
    const DeferredKey& key = (*records.names).deferred[miss.key];
    const bool whole = miss.device.empty() || wholeNodes.contains({miss.node, miss.key});
    Suspect suspect;
    suspect.kind = whole ? SuspectKind::kNode : SuspectKind::kDevice;
    suspect.node = miss.node;
    suspect.what = whole ? "" : miss.device;
    suspect.evidence.push_back(
        fmt::format("fail: {}, {}: {}", printable(key.stage), printable(key.metric), miss.detail));
    suspect.next = printable(key.expectation.remedy, 300);
    fleet.suspects.push_back(std::move(suspect));
  }
}

void addCommonCauses(const FleetOptions& options, Fleet& fleet) {
  std::set<std::string> measured;
  std::set<std::string> nodes;
  std::map<std::string, std::set<std::string>> rails;
  size_t devices = 0;
  for (const FleetNode& node : fleet.nodes) {
    if (!node.records.empty()) measured.insert(node.name);
    devices = std::max(devices, node.devices);
  }
  for (const Suspect& suspect : fleet.suspects) {
    for (const std::string& node : nodesOf(suspect)) nodes.insert(node);
    if (suspect.kind == SuspectKind::kDevice && devices > 1) rails[suspect.what].insert(suspect.node);
  }
  std::vector<Suspect> found;
  for (const auto& [name, members] : options.topology) {
    size_t size = 0;
    std::vector<std::string> hit;
    for (const std::string& member : members) {
      size += measured.contains(member) ? 1 : 0;
      if (nodes.contains(member)) hit.push_back(member);
    }
    if (size == measured.size() ||
        !isCommon(hit.size(), size, nodes.size() - hit.size(), measured.size() - size))
      continue;
    Suspect suspect;
    suspect.kind = SuspectKind::kSwitch;
    suspect.what = name;
    suspect.evidence.push_back(fmt::format("{} of its {} nodes are suspect, of the other {} only {}: {}",
                                           hit.size(), size, measured.size() - size,
                                           nodes.size() - hit.size(), printable(join(hit, ", "), 200)));
    suspect.next =
        "Look for what these nodes share before replacing parts of each: the switch, power feed and cooling "
        "of it";
    found.push_back(std::move(suspect));
  }
  size_t hits = 0;
  for (const auto& [device, where] : rails) hits += where.size();
  for (const auto& [device, where] : rails) {
    // Elsewhere: all other devices of all nodes.
    const size_t others = measured.size() * std::max<size_t>(rails.size(), 8) - measured.size();
    if (!isCommon(where.size(), measured.size(), hits - where.size(), others)) continue;
    Suspect suspect;
    suspect.kind = SuspectKind::kRail;
    suspect.what = device;
    suspect.evidence.push_back(
        fmt::format("{} is suspect on {} of {} nodes", device, where.size(), measured.size()));
    suspect.next =
        "The same place on many nodes: look at what that place shares, such as its rail's switch, riser or "
        "airflow";
    found.push_back(std::move(suspect));
  }
  fleet.suspects.insert(fleet.suspects.end(), found.begin(), found.end());
}

void orderSuspects(Fleet& fleet) {
  std::stable_sort(fleet.suspects.begin(), fleet.suspects.end(), [](const Suspect& a, const Suspect& b) {
    // A missed limit says more than a distance to the peers: it is told first.
    return std::tie(a.kind, a.node, a.what, a.byPeers) < std::tie(b.kind, b.node, b.what, b.byPeers);
  });
  std::vector<Suspect> merged;
  for (Suspect& suspect : fleet.suspects) {
    Suspect* last = merged.empty() ? nullptr : &merged.back();
    if (last == nullptr || last->kind != suspect.kind || last->node != suspect.node ||
        last->what != suspect.what) {
      merged.push_back(std::move(suspect));
      continue;
    }
    if (suspect.byPeers && !suspect.evidence.empty() && last->evidence.size() == kMostEvidence)
      last->evidence.pop_back();
    for (const std::string& line : suspect.evidence) addEvidence(*last, line);
    last->byBoth = last->byBoth || suspect.byBoth || last->byPeers != suspect.byPeers;
    last->byPeers = last->byPeers || suspect.byPeers;
    if (last->serial.empty()) last->serial = suspect.serial;
    if (last->next.empty()) last->next = suspect.next;
  }
  fleet.suspects = std::move(merged);
  std::set<std::string> named;
  for (const Suspect& suspect : fleet.suspects)
    for (const std::string& node : nodesOf(suspect)) named.insert(node);
  for (FleetNode& node : fleet.nodes) node.suspect = node.suspect || named.contains(node.name);
  if (fleet.suspects.size() > kMostSuspects) {
    fleet.suspectsLeft += fleet.suspects.size() - kMostSuspects;
    fleet.suspects.resize(kMostSuspects);
  }
}

}  // namespace muster::fleet
