// SPDX-License-Identifier: Apache-2.0
// Decides which nodes must run again and which records count.
#include "reports/history/delta.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/fleet/read/runs.h"
#include "reports/history/delta_match.h"
#include "reports/history/part_list.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster::history {
namespace {

using fleet::NodeSummary;
using fleet::StageSummary;

/// The runner's own stage: every job of a node takes the inventory.
constexpr const char* kInventoryStage = "muster:inventory";

bool ran(const StageSummary& stage) {
  return stage.state != StageState::kElsewhere;
}

class Planner {
 public:
  explicit Planner(const DeltaInput& input) : input_(input), runs_(fleet::runsOf(input.records)) {}

  Delta plan() {
    placeNodes();
    sortRecords();
    for (const UnrecordedNode& one : input_.unrecorded) findUnrecorded(one.node, one.why);
    for (const fleet::InterruptedRun& run : input_.interruptedRuns)
      findUnrecorded(run.node, fmt::format("its run in {} was interrupted, or is not finished: finish it "
                                           "with `muster run --resume`, or move it away",
                                           printable(run.path, 200)));
    for (const auto& bad : input_.records.quarantined)
      delta_.mismatches.push_back(fmt::format("{} cannot be used: {}", printable(bad.path), bad.reason));
    owners_ = partOwners(acceptedParts());
    for (size_t i = 0; i < delta_.nodes.size(); ++i) findChanges(i);
    for (const Found& found : found_)
      for (const auto* list : {&found.rerun, &found.survey})
        for (const size_t i : *list) missPartsIn(record(i));
    for (const size_t i : outside_) missPartsIn(record(i));
    for (size_t i = 0; i < delta_.nodes.size(); ++i) choose(i);
    checkPartsOnce();
    return std::move(delta_);
  }

 private:
  /// The records of one node, by what they are read for; new ones from the oldest to the newest.
  struct Found {
    std::vector<size_t> accepted;
    std::vector<size_t> rerun;
    std::vector<size_t> survey;
    std::string unrecorded;    ///< a new run has no record
    std::string lost;          ///< why an accepted record cannot be used
    std::string contradicted;  ///< by an inventory scan that says it is older than the acceptance
    std::string lostParts;     ///< parts of it that are in another node now
  };

  [[nodiscard]] const NodeSummary& record(size_t i) const { return input_.records.nodes[i]; }
  [[nodiscard]] const std::string& text(uint32_t number) const { return input_.records.names->texts[number]; }

  void placeNodes() {
    for (const FleetMember& member : input_.accepted.nodes) {
      place_.emplace(member.name, delta_.nodes.size());
      delta_.nodes.push_back({});
      delta_.nodes.back().name = member.name;
    }
    found_.resize(delta_.nodes.size());
  }

  /// The first reason counts. Nodes outside the fleet are of no interest.
  void findUnrecorded(const std::string& node, const std::string& why) {
    const auto at = place_.find(node);
    if (at != place_.end() && found_[at->second].unrecorded.empty()) found_[at->second].unrecorded = why;
  }

  void sortRecords() {
    std::map<std::string, size_t> byDigest;
    for (size_t i = 0; i < input_.uses.size(); ++i)
      if (input_.uses[i] == RecordUse::kAccepted) byDigest.emplace(record(i).sha256, i);
    for (size_t n = 0; n < input_.accepted.nodes.size(); ++n)
      for (const FleetEntry& entry : input_.accepted.nodes[n].records) findAccepted(n, entry, byDigest);
    for (size_t i = 0; i < input_.uses.size(); ++i)
      if (input_.uses[i] != RecordUse::kAccepted) placeNew(i);
    for (Found& found : found_)
      for (auto* list : {&found.rerun, &found.survey})
        std::stable_sort(list->begin(), list->end(),
                         [&](size_t a, size_t b) { return record(a).started < record(b).started; });
  }

  void findAccepted(size_t n, const FleetEntry& entry, const std::map<std::string, size_t>& byDigest) {
    Found& found = found_[n];
    const auto at = byDigest.find(entry.sha256);
    if (at == byDigest.end())
      found.lost = whyLost(entry);
    else if (record(at->second).node != delta_.nodes[n].name)
      found.lost = fmt::format("the record {} is of node {}", printable(entry.path), record(at->second).node);
    else
      found.accepted.push_back(at->second);
  }

  [[nodiscard]] std::string whyLost(const FleetEntry& entry) const {
    for (const auto& bad : input_.unreadable)
      if (bad.path.ends_with("/" + entry.path))
        return fmt::format("the record it was accepted with, {}, cannot be read: {}", printable(entry.path),
                           printable(bad.reason, 200));
    return fmt::format("the record it was accepted with, {} (sha256 {}), is missing or was changed",
                       printable(entry.path), entry.sha256.substr(0, 12));
  }

  void placeNew(size_t i) {
    const NodeSummary& node = record(i);
    const bool survey = input_.uses[i] == RecordUse::kSurvey;
    // It would hide whatever comes after it.
    if (node.finished > input_.latest)
      return delta_.mismatches.push_back(fmt::format(
          "{}: it ended at {} by its own clock: this machine's clock or the node's is wrong; set it "
          "right, and run the node again if its clock was ahead",
          printable(node.path), formatUtc(node.finished)));
    if (survey && node.simulated != input_.accepted.simulated) {
      delta_.mismatches.push_back(
          fmt::format("{}: {} shows nothing about these nodes", printable(node.path),
                      node.simulated ? "a simulated inventory scan" : "an inventory scan of hardware"));
      return;
    }
    const auto at = place_.find(node.node);
    if (at == place_.end()) {
      const std::string line = fmt::format("{}: node {} is not in the accepted fleet", printable(node.path),
                                           printable(node.node, 80));
      if (!survey) return delta_.mismatches.push_back(line + "; accept a new node as its own fleet first");
      delta_.notes.push_back(line);
      return outside_.push_back(i);
    }
    Found& found = found_[at->second];
    if (survey) return placeSurvey(i, found);
    const std::string wrong = mismatchOf(input_, node, found.accepted);
    if (wrong.empty())
      found.rerun.push_back(i);
    else
      delta_.mismatches.push_back(fmt::format("{}: {}", printable(node.path), wrong));
  }

  /// One that is older than the acceptance tells nothing, unless its clock or the other one was wrong: then
  /// it shows other parts.
  void placeSurvey(size_t i, Found& found) {
    const NodeSummary& node = record(i);
    const double accepted = acceptedUntil(input_, found.accepted);
    if (node.started > accepted) return found.survey.push_back(i);
    const std::string when = fmt::format("of {}, before the node's accepted run ended ({})",
                                         formatUtc(node.started), formatUtc(accepted));
    delta_.notTaken.push_back(fmt::format("{}: {}", printable(node.path), when));
    if (found.accepted.empty()) return;
    const NodeSummary& before = record(found.accepted.front());
    const auto parts = partChanges(partsOf(before), partsOf(node));
    const auto facts = softwareChanges(before, node, *input_.records.names);
    if (parts.empty() && facts.empty()) return;
    found.contradicted = fmt::format(
        "an inventory scan {} shows {}: either a clock was wrong, or the scan is older than the repair and "
        "must not be given",
        when, parts.empty() ? facts.front() : parts.front().text());
  }

  [[nodiscard]] NodeParts acceptedPartsOf(size_t n) const {
    const Found& found = found_[n];
    return found.accepted.empty() ? NodeParts{} : partsOf(record(found.accepted.front()));
  }

  [[nodiscard]] std::vector<std::pair<std::string, NodeParts>> acceptedParts() const {
    std::vector<std::pair<std::string, NodeParts>> all;
    for (size_t n = 0; n < found_.size(); ++n) all.emplace_back(delta_.nodes[n].name, acceptedPartsOf(n));
    return all;
  }

  /// What is known last of a node: its newest new record, if it has one.
  [[nodiscard]] const NodeSummary* latest(size_t n) const {
    const NodeSummary* newest = nullptr;
    for (const auto* list : {&found_[n].rerun, &found_[n].survey})
      if (!list->empty() && (newest == nullptr || record(list->back()).started > newest->started))
        newest = &record(list->back());
    return newest;
  }

  void findChanges(size_t n) {
    const NodeSummary* now = latest(n);
    if (now == nullptr || found_[n].accepted.empty()) return;
    DeltaNode& node = delta_.nodes[n];
    const NodeSummary& before = record(found_[n].accepted.front());
    const NodeParts old = partsOf(before);
    node.parts = partChanges(old, partsOf(*now));
    node.facts = softwareChanges(before, *now, *input_.records.names);
    if (old.empty() && !now->devices.empty())
      delta_.notes.push_back(fmt::format(
          "{}: its devices have neither serial nor UUID, so a replacement cannot be detected", node.name));
    if (node.parts.empty() && node.facts.empty()) node.facts = changesInBetween(n);
    for (PartChange& change : node.parts) {
      const auto owner = owners_.find(change.after);
      if (owner != owners_.end()) change.from = owner->second.node + " " + owner->second.device;
    }
  }

  /// What an inventory scan showed that is as it was again, and was not tested since.
  [[nodiscard]] std::vector<std::string> changesInBetween(size_t n) const {
    const Found& found = found_[n];
    const NodeSummary& before = record(found.accepted.front());
    for (const size_t i : found.survey) {
      if (!found.rerun.empty() && record(found.rerun.back()).started > record(i).started) continue;
      std::vector<std::string> facts = softwareChanges(before, record(i), *input_.records.names);
      for (const PartChange& part : partChanges(partsOf(before), partsOf(record(i))))
        facts.push_back(part.text());
      for (std::string& fact : facts) fact += fmt::format(" on {}", formatUtc(record(i).started));
      if (!facts.empty()) return facts;
    }
    return {};
  }

  /// Parts of other nodes that a new record shows, of whatever node, also one that is not in the accepted
  /// fleet: those lacked them then. It does not matter where they ran later, or know that they lack them.
  void missPartsIn(const NodeSummary& holder) {
    for (const auto& [device, serial] : partsOf(holder).byDevice) {
      const auto at = owners_.find(serial);
      if (at == owners_.end() || at->second.node == holder.node) continue;
      const PartPlace& owner = at->second;
      Found& found = found_[place_.at(owner.node)];
      if (holder.started <= acceptedUntil(input_, found.accepted)) continue;
      const NodeSummary* now = latest(place_.at(owner.node));
      const bool lacks = now != nullptr && partsOf(*now).placeOf(serial).empty();
      const bool ranSince = !found.rerun.empty() && record(found.rerun.back()).started > holder.started;
      // One part cannot be in two nodes: which of them ran with it last is not known then.
      const auto place = place_.find(holder.node);
      const NodeSummary* theirs = place == place_.end() ? nullptr : latest(place->second);
      const bool still = theirs != nullptr && !partsOf(*theirs).placeOf(serial).empty();
      if (!lacks && (!ranSince || still))
        found.lostParts =
            fmt::format("its {} (serial {}) {} in {}", owner.device, printable(serial, 64),
                        now != nullptr && now->started > holder.started && !still ? "was" : "is now",
                        printable(holder.node, 80));
    }
  }

  /// Whether `news` ran every stage that the accepted records ran.
  [[nodiscard]] bool coversAll(const std::vector<size_t>& accepted, const std::vector<size_t>& news) const {
    std::set<uint32_t> has;
    for (const size_t i : news)
      for (const StageSummary& stage : record(i).stages)
        if (ran(stage)) has.insert(stage.name);
    for (const size_t i : accepted)
      for (const StageSummary& stage : record(i).stages)
        if (ran(stage) && text(stage.name) != kInventoryStage && has.count(stage.name) == 0) return false;
    return true;
  }

  void choose(size_t n) {
    const Found& found = found_[n];
    DeltaNode& node = delta_.nodes[n];
    const bool changed = !node.parts.empty() || !node.facts.empty();
    if (!found.unrecorded.empty()) return need(node, found.unrecorded);
    if (!found.rerun.empty()) return chooseRerun(n, changed);
    if (!found.lostParts.empty()) return need(node, found.lostParts);
    if (changed) return need(node, whatChanged(node));
    if (!found.contradicted.empty()) return need(node, found.contradicted);
    if (!found.lost.empty()) return need(node, found.lost);
    node.records = found.accepted;
  }

  static bool isInGroup(const NodeSummary& node) {
    return std::any_of(node.stages.begin(), node.stages.end(), [](const StageSummary& stage) {
      return stage.scope == Scope::kCluster && ran(stage) && stage.groupNodes > 1;
    });
  }

  /// How many records of a new run of several nodes are missing. Each may hold the only evidence, that of
  /// node 0 the results of the whole group. Where no groups are told, records of one node number are of as
  /// many runs.
  [[nodiscard]] size_t missingOf(size_t at) const {
    const NodeSummary& node = record(at);
    if (!isInGroup(node)) return 0;
    std::map<int, size_t> ranks;
    for (const Found& found : found_)
      for (const size_t i : found.rerun)
        if (isInGroup(record(i)) && runs_[i] == runs_[at] &&
            (!runs_[at].empty() ||
             (record(i).fleetId == node.fleetId && record(i).nodeCount == node.nodeCount)))
          ++ranks[record(i).nodeRank];
    size_t runs = 1;
    if (runs_[at].empty())
      for (const auto& [rank, count] : ranks) runs = std::max(runs, count);
    // Not node by node: how many they were is the record's own word.
    size_t missing = static_cast<size_t>(node.nodeCount) * runs;
    for (const auto& [rank, count] : ranks)
      if (rank >= 0 && rank < node.nodeCount) missing -= std::min(runs, count);
    return missing;
  }

  /// How a node that ran several times differed between two of these runs; empty: not at all.
  [[nodiscard]] std::string differs(const std::vector<size_t>& rerun) const {
    const NodeSummary& newest = record(rerun.back());
    for (const size_t i : rerun) {
      const auto parts = partChanges(partsOf(record(i)), partsOf(newest));
      const auto facts = softwareChanges(record(i), newest, *input_.records.names);
      if (!parts.empty() || !facts.empty())
        return fmt::format(
            "its runs of {} and {} are of different parts or software ({}): give only what ran "
            "after the last change, of all stages",
            formatUtc(record(i).started), formatUtc(newest.started),
            parts.empty() ? facts.front() : parts.front().text());
    }
    return "";
  }

  void chooseRerun(size_t n, bool changed) {
    const Found& found = found_[n];
    DeltaNode& node = delta_.nodes[n];
    for (const size_t i : found.rerun)
      if (const size_t missing = missingOf(i); missing > 0)
        return need(node,
                    fmt::format("{}: of its run of {} nodes {} record{} not among the new ones, and what "
                                "failed may stand there alone",
                                printable(record(i).path), record(i).nodeCount, missing,
                                missing == 1 ? " is" : "s are"));
    const NodeSummary& newest = record(found.rerun.back());
    const NodeSummary* now = latest(n);
    const auto since = partChanges(partsOf(newest), partsOf(*now));
    if (now != &newest && (!since.empty() || !softwareChanges(newest, *now, *input_.records.names).empty()))
      return need(node, fmt::format("it changed again after its run of {}{}", formatUtc(newest.started),
                                    since.empty() ? "" : ": " + since.front().text()));
    if (!found.lostParts.empty()) return need(node, found.lostParts);
    if (std::string how = differs(found.rerun); !how.empty()) return need(node, std::move(how));
    node.state = DeltaState::kRerun;
    node.records = found.rerun;
    if (changed || !found.lost.empty() || coversAll(found.accepted, found.rerun)) return;
    // Nothing was replaced and only some stages ran: what was accepted stands, and what failed now, is for
    // the fleet to judge, or of a group of which another node may have failed, counts as well.
    node.records = found.accepted;
    for (const size_t i : found.rerun)
      if (record(i).acceptance != Acceptance::kAccepted || isForTheFleet(record(i)) || isInGroup(record(i)))
        node.records.push_back(i);
    if (node.records.size() > found.accepted.size()) return;
    node.state = DeltaState::kKept;
    for (const size_t i : found.rerun)
      delta_.notTaken.push_back(
          fmt::format("{}: incomplete run of a node without replaced parts", printable(record(i).path)));
  }

  /// Whether it has checks that only the fleet can judge.
  static bool isForTheFleet(const NodeSummary& node) {
    return node.accounting.counts[static_cast<size_t>(Outcome::kDeferred)] > 0;
  }

  static std::string whatChanged(const DeltaNode& node) {
    std::vector<std::string> lines = node.facts;
    for (const PartChange& part : node.parts) lines.push_back(part.text());
    constexpr size_t kMost = 4;
    const size_t all = lines.size();
    if (all > kMost) lines.resize(kMost);
    return fmt::format("{}{}, and not retested since", join(lines, ", "),
                       all > kMost ? fmt::format(" and {} more", all - kMost) : "");
  }

  static void need(DeltaNode& node, std::string why) {
    node.state = DeltaState::kNeeds;
    node.why = std::move(why);
    node.records.clear();
  }

  /// One part cannot be in two nodes: a record is of a moment that is over.
  void checkPartsOnce() {
    std::vector<std::pair<std::string, NodeParts>> all;
    for (const DeltaNode& node : delta_.nodes)
      if (node.state == DeltaState::kRerun) all.emplace_back(node.name, partsOf(record(node.records.back())));
    for (const auto& [serial, places] : partPlaces(all))
      if (places.size() > 1)
        delta_.mismatches.push_back(fmt::format(
            "according to the new records, part {} is in {} {} and in {} {}; retest both",
            printable(serial, 64), places[0].node, places[0].device, places[1].node, places[1].device));
  }

  const DeltaInput& input_;
  std::vector<std::string> runs_;  ///< by index of the record; see runs.h
  Delta delta_;
  std::map<std::string, size_t> place_;
  std::vector<Found> found_;
  std::vector<size_t> outside_;              ///< inventory scans of nodes that are not in the accepted fleet
  std::map<std::string, PartPlace> owners_;  ///< parts of the accepted fleet
};

}  // namespace

std::string PartChange::text() const {
  if (after.empty()) return fmt::format("{}: {} was removed", device, printable(before, 64));
  const std::string moved = from.empty() ? "" : fmt::format(" (it was {})", from);
  if (before.empty()) return fmt::format("{}: {} was added{}", device, printable(after, 64), moved);
  return fmt::format("{}: {} replaced by {}{}", device, printable(before, 64), printable(after, 64), moved);
}

std::vector<std::string> Delta::needing() const {
  std::vector<std::string> names;
  for (const DeltaNode& node : nodes)
    if (node.state == DeltaState::kNeeds) names.push_back(node.name);
  return names;
}

Delta planDelta(const DeltaInput& input) {
  return Planner(input).plan();
}

}  // namespace muster::history
