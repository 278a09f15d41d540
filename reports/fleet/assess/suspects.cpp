// SPDX-License-Identifier: Apache-2.0
// Collects and merges the evidence against each suspect.
#include "reports/fleet/assess/suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "reports/fleet/assess/key_figures.h"
#include "reports/fleet/assess/peer_table.h"
#include "reports/fleet/blame/cluster_stages.h"
#include "reports/fleet/blame/culprit.h"
#include "reports/fleet/blame/findings.h"
#include "reports/fleet/check/record_finding.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

const NodeSummary* recordOf(const FleetRecords& records, const FleetNode& node) {
  return node.records.empty() ? nullptr : &records.nodes[node.records.front()];
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
  return d.outcome == Outcome::kFail || (d.outcome == Outcome::kFlaky && d.blocks) ||
         d.outcome == Outcome::kError;
}

/// A failure that its record holds against a part of its own node: nothing else caused it.
bool isOwnFailure(const DeviationSummary& d) {
  return isFailure(d) && d.cause == Cause::kOwn;
}

/// Whether the part is one of other members of its group, or a link to one.
bool isOfOthers(const Suspect& part, const std::string& node, const std::map<std::string, int>& members) {
  std::vector<std::string> others = nodesOf(part);
  std::erase(others, node);
  return !others.empty() && std::all_of(others.begin(), others.end(),
                                        [&](const std::string& other) { return members.contains(other); });
}

/// Takes a failure into what speaks against a part. A contested one proves nothing, nor does what another
/// part says of why it ended: it is measured anew.
void addFailure(Suspect& suspect, const DeviationSummary& d, const FleetNames& names) {
  const bool open = suspect.contested || d.outcome == Outcome::kError || d.cause == Cause::kPeer;
  suspect.failed = suspect.failed || !open;
  suspect.unmeasured = suspect.unmeasured || open;
  suspect.grade = std::min(suspect.grade, gradeOf(d, names));
  suspect.stages.insert(names.texts[d.stage]);
  if (suspect.limitSource.empty()) suspect.limitSource = d.limitSource;
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
      return one.scope == Scope::kCluster && records.names->texts[one.name] == stage;
    });
  });
}

/// What most nodes fail: then the fleet as a whole is off, and naming each device would hide that. Not so
/// where it is the same place on all of them: that is a rail.
class Widespread {
 public:
  Widespread(const FleetRecords& records, const BlameTable& blame, const FleetNodes& nodes)
      : records_(records) {
    for (const FleetNode& node : nodes) {
      std::map<Key, const DeviationSummary*> failed;
      for (const size_t i : node.records)
        for (const DeviationSummary& d : records.nodes[i].deviations)
          if (isOwnFailure(d) && !isOfNetwork(d) && blame.limitingRail(d, records.nodes[i]) == nullptr) {
            failed.emplace(keyOf(d), &d);
            places_[keyOf(d)].insert(ownPart(d, records.nodes[i]).what);
          }
      measured_ += node.records.empty() ? 0 : 1;
      devices_ = std::max(devices_, node.devices);
      for (const auto& [key, d] : failed) {
        Hits& hits = hits_[key];
        if (hits.nodes++ == 0) hits.example = {node.name, d};
      }
    }
  }
  [[nodiscard]] bool covers(const DeviationSummary& d) const {
    return !isOfNetwork(d) && isWide(keyOf(d), hits_.at(keyOf(d)));
  }

  void addTo(std::vector<Suspect>& suspects) const {
    for (const auto& [key, hits] : hits_) {
      if (!isWide(key, hits)) continue;
      const DeviationSummary& d = *hits.example.second;
      Suspect suspect;
      suspect.kind = SuspectKind::kGroup;
      suspect.what =
          printable(std::get<0>(key)) + (std::get<1>(key).empty() ? "" : ", " + printable(std::get<1>(key)));
      const bool together = isGroupStage(records_, std::get<0>(key));
      suspect.evidence.push_back(
          fmt::format("{} of {} nodes failed it, {}; on {}: {}", hits.nodes, measured_,
                      together ? "which run it as one group, so a single rank or link can fail all of them"
                               : "so this is not a single-device fault",
                      hits.example.first, deviationLine(d, *records_.names)));
      suspect.next = together ? d.remedy
                              : "Check causes shared by all nodes: driver, BIOS and power settings, cooling, "
                                "system image, the plan's limits. " +
                                    d.remedy;
      addFailure(suspect, d, *records_.names);
      suspects.push_back(std::move(suspect));
    }
  }

 private:
  using Key = std::tuple<std::string, std::string, Outcome>;  ///< stage, metric: by text, for the order
  struct Hits {
    size_t nodes = 0;
    std::pair<std::string, const DeviationSummary*> example;
  };
  /// One link that a test located is reported by both ends and node 0, and a node with slow links by all its
  /// partners: in a small run by most nodes. A rail is reported by all.
  static bool isOfNetwork(const DeviationSummary& d) {
    return peerNode(d) >= 0 || d.labels.find(" kind=link") != std::string::npos ||
           d.labels.find(" kind=rail") != std::string::npos;
  }
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
  std::map<Key, std::set<std::string>> places_;  ///< devices or ports that fail it
};

/// Whether most nodes of the SKU have as many devices as those of the table.
bool holdsMost(const PeerTable& table, const FleetNodes& nodes) {
  const auto all = std::count_if(nodes.begin(), nodes.end(), [&](const FleetNode& node) {
    return node.sku == table.group.name && !node.records.empty();
  });
  return 2 * static_cast<std::ptrdiff_t>(table.nodes.size()) > all;
}

Status addOutliers(const PeerTable& table, const FleetRecords& records, const FleetOptions& options,
                   FleetNodes& nodes, PeerComparison& found) {
  MUSTER_TRY(const PeerFindings findings, findOutliers(table.group));
  for (const std::string& note : findings.notes)
    found.notes.push_back(
        fmt::format("{}{}: {}", table.group.name, table.nodeWide ? ", metrics of whole nodes" : "", note));
  for (Outlier outlier : findings.outliers) {
    if (table.nodeWide && outlier.level == PeerLevel::kDevice) outlier.level = PeerLevel::kNode;
    Suspect suspect;
    suspect.byPeers = true;
    suspect.evidence.push_back(outlierText(table.group, outlier));
    for (const PeerEvidence& one : outlier.evidence)
      suspect.stages.insert(records.names->figures[table.keys[one.metric]].stage);
    suspect.kind = outlier.level == PeerLevel::kGroup  ? SuspectKind::kGroup
                   : outlier.level == PeerLevel::kNode ? SuspectKind::kNode
                                                       : SuspectKind::kDevice;
    if (outlier.level == PeerLevel::kGroup) {
      if (!holdsMost(table, nodes)) continue;
      suspect.what = table.group.name;
      suspect.next =
          "All devices of the fleet are below their profile: check shared causes before single devices";
      found.suspects.push_back(std::move(suspect));
      continue;
    }
    FleetNode& node = nodes[table.nodes[outlier.node]];
    suspect.node = node.name;
    if (outlier.level == PeerLevel::kDevice) {
      suspect.what = table.group.nodes[outlier.node].devices[outlier.device];
      suspect.serial = serialOf(recordOf(records, node), suspect.what);
    }
    suspect.next =
        fmt::format("Rerun the plan on {}; if it recurs, {}", node.name,
                    suspect.what.empty() ? "compare its configuration, cooling and power with other nodes"
                                         : "swap the device's position, then replace it");
    const std::string waived = waivedBy(table, outlier, suspect, records);
    if (!waived.empty()) suspect.evidence.push_back(waived);
    if (options.rejectOutliers && waived.empty()) {
      MUSTER_TRY(const bool isSure, isOutlierWithoutAny(table.group, outlier));
      const std::string& evidence = suspect.evidence.front();
      if (!isSure) {
        blockNode(node, NodeState::kIncomplete,
                  "statistical outlier, but not without one other node: " + evidence);
      } else if (node.state != NodeState::kRejected) {
        node.state = NodeState::kRejected;
        node.reason = "statistical outlier: " + evidence;
      }
    }
    found.suspects.push_back(std::move(suspect));
  }
  return {};
}

}  // namespace

Result<PeerComparison> comparePeers(const FleetRecords& records, const FleetOptions& options,
                                    FleetNodes& nodes) {
  PeerComparison found;
  PeerTables peers = peerTables(records, nodes);
  found.findings = std::move(peers.findings);
  found.notes = std::move(peers.notes);
  for (PeerTable& table : peers.tables) {
    addExpected(table, records, options, nodes);
    MUSTER_CHECK_OK(addOutliers(table, records, options, nodes, found));
    std::vector<Distribution> distributions = distributionsOf(table, records);
    addWorstShares(table, distributions, nodes);
    if (!table.nodeWide) addKeyFigures(table, nodes, found.keyFigures);
    std::move(distributions.begin(), distributions.end(), std::back_inserter(found.distributions));
  }
  return found;
}

namespace {

/// Nodes most of whose devices miss the same limit relative to the fleet: then the node is off, not each
/// device.
std::set<std::pair<std::string, uint32_t>> deferredOfWholeNodes(const DeferredVerdicts& deferred,
                                                                const FleetNodes& nodes) {
  std::map<std::pair<std::string, uint32_t>, std::set<std::string>> devices;
  for (const DeferredMiss& miss : deferred.misses)
    if (miss.outcome == Outcome::kFail && !miss.device.empty())
      devices[{miss.node, miss.key}].insert(miss.device);
  std::set<std::pair<std::string, uint32_t>> whole;
  for (const FleetNode& node : nodes)
    for (auto it = devices.lower_bound({node.name, 0}); it != devices.end() && it->first.first == node.name;
         ++it)
      if (it->second.size() >= kWholeNode && 2 * it->second.size() > node.devices) whole.insert(it->first);
  return whole;
}

}  // namespace

namespace {

/// The parts that the records of each node name.
class NamedParts {
 public:
  /// Whether the node may name the part: one of kMostNamedByNode.
  bool add(const std::string& node, const Suspect& part) {
    std::set<std::string>& parts = parts_[node];
    std::string name = part.name();
    if (parts.size() < kMostNamedByNode)
      parts.insert(std::move(name));
    else if (!parts.contains(name)) {
      ++left_;
      return false;
    }
    return true;
  }
  [[nodiscard]] size_t left() const { return left_; }

 private:
  std::map<std::string, std::set<std::string>> parts_;
  size_t left_ = 0;
};

/// Failures of many records that one part caused, or that only the group as a whole answers for: one finding.
class Caused {
 public:
  Caused(const FleetRecords& records, NamedParts& named) : records_(records), named_(named) {}

  void add(const DeviationSummary& d, const NodeSummary& record, const Blame& blame) {
    for (const Suspect& part : blame.parts) {
      if (!named_.add(record.node, part)) continue;
      Finding& finding =
          findings_[{part.name(), records_.names->texts[d.stage], records_.names->texts[d.metric]}];
      if (finding.first == nullptr) {
        finding.suspect = part;
        finding.first = &d;
        finding.why = blame.why;
      }
      if (blame.members != nullptr && finding.groups.insert(blame.members).second)
        finding.suspect.members.insert(blame.members->begin(), blame.members->end());
      finding.suspect.contested = finding.suspect.contested && part.contested;
      addFailure(finding.suspect, d, *records_.names);
      // What somebody else ended is lost to all: that weighs more than a limit.
      if (d.cause == Cause::kPeer)
        finding.suspect.grade = std::min(finding.suspect.grade, FindingClass::kMissing);
      finding.seen[record.node] += d.times;
    }
  }

  void addTo(std::vector<Suspect>& suspects) {
    for (auto& [key, finding] : findings_) {
      Suspect& suspect = finding.suspect;
      suspect.evidence.push_back(evidenceOf(finding));
      suspect.next = nextOf(finding);
      suspect.beneath.push_back(seenText(finding));
      suspects.push_back(std::move(suspect));
    }
  }

 private:
  struct Finding {
    Suspect suspect;
    const DeviationSummary* first = nullptr;
    std::string why;
    std::set<const std::set<std::string>*> groups;  ///< whose members are its suspect's
    std::map<std::string, size_t> seen;             ///< verdicts by the node that holds them
  };

  [[nodiscard]] static std::string seenText(const Finding& finding) {
    std::vector<std::string> parts;
    size_t all = 0;
    for (const auto& [node, times] : finding.seen) {
      all += times;
      if (parts.size() < kMostReporters) parts.push_back(fmt::format("{} ({})", node, times));
    }
    const size_t left = finding.seen.size() - parts.size();
    return fmt::format("seen in {} check result{} of {} node{}: {}{}", all, all == 1 ? "" : "s",
                       finding.seen.size(), finding.seen.size() == 1 ? "" : "s", join(parts, ", "),
                       left > 0 ? fmt::format(" and {} more", left) : "");
  }

  [[nodiscard]] std::string evidenceOf(const Finding& finding) const {
    const DeviationSummary& d = *finding.first;
    const std::string stage = printable(records_.names->texts[d.stage]);
    const bool known = finding.suspect.kind != SuspectKind::kGroup;
    if (d.cause == Cause::kRank && known)
      return fmt::format("{}: {}, {}: wrong results come from its data ({})", outcomeName(d.outcome), stage,
                         printable(records_.names->texts[d.metric]), finding.why);
    if (d.cause == Cause::kRank)
      return deviationLine(d, *records_.names) + "; the source of the wrong data is unknown";
    if (d.cause == Cause::kPeer)
      return fmt::format("{}: {}: {}", outcomeName(d.outcome), stage, printable(finding.why, 300));
    return deviationLine(d, *records_.names) + "; this result belongs to the whole group";
  }

  [[nodiscard]] static std::string nextOf(const Finding& finding) {
    const DeviationSummary& d = *finding.first;
    if (d.cause == Cause::kRank && finding.suspect.kind == SuspectKind::kDevice)
      return fmt::format(
          "Test {} of {} alone, including memory and links (plans/node-full.toml); replace it if it fails",
          finding.suspect.what, finding.suspect.node);
    if (d.cause == Cause::kPeer && finding.suspect.kind == SuspectKind::kNode)
      return "Check its console, power, network and system log at that time; then rerun the plan on all "
             "these nodes";
    return remedyOf(d);
  }

  static constexpr size_t kMostReporters = 8;
  const FleetRecords& records_;
  NamedParts& named_;
  std::map<std::tuple<std::string, std::string, std::string>, Finding> findings_;
};

}  // namespace

FailureFindings findFailures(const FleetRecords& records, const RunTable& runs, const BlameTable& blame,
                             const DeferredVerdicts& deferred, const FleetNodes& nodes) {
  FailureFindings found;
  std::vector<Suspect>& suspects = found.list;
  NamedParts named;
  const Widespread widespread(records, blame, nodes);
  widespread.addTo(suspects);
  Caused caused(records, named);
  const auto addOwn = [&](const DeviationSummary& d, const NodeSummary& record, std::vector<Suspect> parts,
                          const CulpritFigures& figures) {
    for (Suspect& suspect : parts) {
      if (!named.add(record.node, suspect)) continue;
      suspect.evidence.push_back(figures.evidenceOf(d));
      if (suspect.kind == SuspectKind::kLink) suspect.reporters.insert(record.node);
      if (suspect.contested)
        suspect.evidence.back() +=
            fmt::format("; so says {}, but not the record of {}", record.node, suspect.node);
      suspect.next = remedyOf(d);
      addFailure(suspect, d, *records.names);
      suspects.push_back(std::move(suspect));
    }
  };
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records) {
      const NodeSummary& record = records.nodes[i];
      std::vector<const DeviationSummary*> failures;
      for (const DeviationSummary& d : record.deviations) {
        if (!isFailure(d)) continue;
        if (!isOwnFailure(d))
          caused.add(d, record, blame.of(d, record));
        else if (blame.limitingRail(d, record) == nullptr && !widespread.covers(d))
          failures.push_back(&d);
      }
      for (Suspect& suspect : takeWholeNode(failures, node, *records.names))
        suspects.push_back(std::move(suspect));
      if (failures.empty()) continue;
      const CulpritFigures figures(record, *records.names);
      for (const DeviationSummary* d : failures) addOwn(*d, record, blame.of(*d, record).parts, figures);
    }
  // A failed run that does not count for its own node, since another one does, still tells of its members.
  for (const RunTable::Entry& entry : runs.entries()) {
    const NodeSummary& record = *entry.record;
    if (!entry.repeated || record.deviations.empty()) continue;
    const CulpritFigures figures(record, *records.names);
    for (const DeviationSummary& d : record.deviations) {
      if (!isFailure(d)) continue;
      Blame others = blame.of(d, record);
      std::erase_if(others.parts, [&](const Suspect& part) {
        return !isOfOthers(part, record.node, runs.membersOf({runs.runOf(record), d.stage}));
      });
      if (isOwnFailure(d))
        addOwn(d, record, std::move(others.parts), figures);
      else
        caused.add(d, record, others);
    }
  }
  caused.addTo(suspects);
  const auto wholeNodes = deferredOfWholeNodes(deferred, nodes);
  for (const DeferredMiss& miss : deferred.misses) {
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
    suspect.failed = true;
    suspect.grade = FindingClass::kLimit;
    suspect.stages.insert(key.stage);
    suspect.limitSource = printable(key.expectation.source, 300);
    suspects.push_back(std::move(suspect));
  }
  found.left = named.left();
  return found;
}

std::vector<Suspect> findCommonCauses(const std::vector<Suspect>& suspects, const FleetRecords& records,
                                      const Topology& topology, const FleetNodes& nodes) {
  std::set<std::string> measured;
  std::set<std::string> flagged;
  std::map<std::string, std::set<std::string>> rails;
  std::map<std::string, FindingClass> grades;  ///< of nodes and rails: the gravest of their findings
  const auto grade = [&](const std::string& place, FindingClass of) {
    const auto [at, fresh] = grades.try_emplace(place, of);
    if (!fresh) at->second = std::min(at->second, of);
  };
  std::set<std::string> overNodes;
  for (const uint32_t stage : clusterStages(records, nodes)) overNodes.insert(records.names->texts[stage]);
  std::set<std::string> failedStages;
  for (const Suspect& suspect : suspects)
    if (suspect.failed && suspect.kind != SuspectKind::kGroup)
      failedStages.insert(suspect.stages.begin(), suspect.stages.end());
  // What has no result in a stage over several nodes, where another part of it failed.
  const auto endedByAnother = [&](const Suspect& suspect) {
    return suspect.unmeasured && !suspect.failed &&
           std::all_of(suspect.stages.begin(), suspect.stages.end(), [&](const std::string& stage) {
             return overNodes.contains(stage) && failedStages.contains(stage);
           });
  };
  size_t devices = 0;
  for (const FleetNode& node : nodes) {
    if (!node.records.empty()) measured.insert(node.name);
    devices = std::max(devices, node.devices);
  }
  for (const Suspect& suspect : suspects) {
    for (const std::string& node : nodesOf(suspect)) {
      flagged.insert(node);
      grade("node " + node, suspect.grade);
    }
    const bool port = suspect.kind == SuspectKind::kRail && !suspect.node.empty();
    if (!(suspect.kind == SuspectKind::kDevice || port) || devices < 2 || endedByAnother(suspect)) continue;
    rails[suspect.what].insert(suspect.node);
    grade("rail " + suspect.what, suspect.grade);
  }
  std::vector<Suspect> found;
  for (const auto& [name, members] : topology) {
    size_t size = 0;
    std::vector<std::string> hit;
    for (const std::string& member : members) {
      size += measured.contains(member) ? 1 : 0;
      if (flagged.contains(member)) hit.push_back(member);
    }
    if (size == measured.size() ||
        !isCommon(hit.size(), size, flagged.size() - hit.size(), measured.size() - size))
      continue;
    Suspect suspect;
    suspect.kind = SuspectKind::kSwitch;
    suspect.what = name;
    suspect.evidence.push_back(
        fmt::format("{0} of its {1} nodes are flagged, but only {3} of the other {2}: {4}", hit.size(), size,
                    measured.size() - size, flagged.size() - hit.size(), printable(join(hit, ", "), 200)));
    suspect.next =
        "Before replacing parts, check causes shared by these nodes: switch, power feed and cooling";
    for (const std::string& member : hit)
      suspect.grade = std::min(suspect.grade, grades.at("node " + member));
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
        fmt::format("{} is flagged on {} of {} nodes", device, where.size(), measured.size()));
    suspect.next =
        "The same position is flagged on many nodes: check shared causes such as the rail's switch, riser or "
        "airflow";
    suspect.grade = grades.at("rail " + device);
    found.push_back(std::move(suspect));
  }
  return found;
}

}  // namespace muster::fleet
