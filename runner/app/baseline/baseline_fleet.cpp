// SPDX-License-Identifier: Apache-2.0
// Converts the records of a fleet to the input of learning.
#include "runner/app/baseline/baseline_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reports/fleet/check/identity.h"
#include "runner/core/clock.h"
#include "runner/core/majority.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {
namespace {

using fleet::FleetNames;
using fleet::FleetRecords;
using fleet::NodeSummary;

/// Labels that say which device or place was measured, and not what: a limit holds for all of them. A `link`
/// is a kind (nvlink, pcie_switch).
const std::set<std::string> kPlaces = {"device", "peer", "port",      "rank", "node",   "hca",
                                       "nic",    "rail", "interface", "edge", "culprit"};
/// Units of figures that a machine reaches; facts and states have limits of their own.
const std::set<std::string> kReached = {"FLOP/s", "OP/s", "B/s", "s", "samples/s", "count/s", "ratio"};

Error refusal(const std::string& message) {
  return {ErrorCode::kUsage, message, ""};
}

/// What has to be the same on the nodes that are learned from, as text with so many digits of each digest.
struct Aspect {
  const char* name;
  std::string (*of)(const NodeSummary& node, size_t digits);
  const char* next;  ///< what to do where no value has a majority
};
constexpr size_t kAllDigits = 64;
constexpr size_t kShownDigits = 12;

const Aspect kPlan = {"plan",
                      [](const NodeSummary& node, size_t digits) {
                        std::string text = node.planName + " " + node.planSha256.substr(0, digits);
                        for (const std::string& change : node.overrides) text += " --set " + change;
                        return text;
                      },
                      "move the records of all plans but one away"};
const Aspect kDevices = {"devices",
                         [](const NodeSummary& node, size_t) {
                           std::map<std::string, size_t> models;
                           for (const auto& device : node.devices) ++models[device.name];
                           std::vector<std::string> parts;
                           for (const auto& [model, count] : models)
                             parts.push_back(fmt::format("{} x {}", count, model));
                           return parts.empty() ? "none" : join(parts, ", ");
                         },
                         "move the records of all kinds of nodes but one away"};
const Aspect kProfile = {"profile",
                         [](const NodeSummary& node, size_t digits) {
                           return node.profileName.empty()
                                      ? "none"
                                      : node.profileName + " " + node.profileSha256.substr(0, digits);
                         },
                         "give the profile to start from by --base FILE, or move the other records away"};

class Gatherer {
 public:
  Gatherer(const FleetRecords& records, bool ownBase)
      : records_(records), names_(*records.names), ownBase_(ownBase), misfits_(records.nodes.size()) {
    std::set<std::string> nodes;
    for (const NodeSummary& node : records.nodes) nodes.insert(node.node);
    nodeCount_ = nodes.size();
  }

  Result<FleetToLearn> gather() {
    if (records_.nodes.empty())
      return refusal(
          records_.quarantined.empty()
              ? "no record found; expected the parent of the nodes' run directories, each with a record.json"
              : "no record could be read; the first: " + records_.quarantined.front().path + ": " +
                    records_.quarantined.front().reason);
    for (const auto& bad : records_.quarantined)
      fleet_.remarks.push_back(fmt::format("set aside: {}: {}", printable(bad.path), bad.reason));
    MUSTER_CHECK_OK(checkTogether());
    gatherNodes();
    gatherFigures();
    gatherProvenance();
    return std::move(fleet_);
  }

 private:
  /// How many nodes have each value, whatever the number of their records.
  template <typename Value>
  std::map<std::string, size_t> votes(Value value) const {
    std::map<std::string, std::set<std::string>> nodes;
    for (const NodeSummary& node : records_.nodes) nodes[value(node)].insert(node.node);
    std::map<std::string, size_t> counts;
    for (const auto& [text, who] : nodes) counts[text] = who.size();
    return counts;
  }

  Status checkTogether() {
    const auto kinds =
        votes([](const NodeSummary& n) { return std::string(n.simulated ? "simulated" : "real"); });
    if (kinds.size() > 1)
      return refusal("simulated records are mixed with real ones: " + votesText(kinds) +
                     "; move the simulated ones away");
    fleet_.simulated = records_.nodes.front().simulated;
    for (const Aspect& aspect : {kPlan, kDevices}) MUSTER_CHECK_OK(compare(aspect));
    if (!ownBase_)
      MUSTER_CHECK_OK(compare(kProfile));
    else if (votes([](const NodeSummary& n) { return n.profileSha256; }).size() > 1)
      fleet_.remarks.push_back(
          fmt::format("profiles differ: {}; nodes may have passed by different limits", shown(kProfile)));
    for (size_t i = 0; i < records_.nodes.size(); ++i)
      if (misfits_[i].empty()) misfits_[i] = misfit(records_.nodes[i]);
    MUSTER_CHECK_OK(groupByNode());
    return checkMachines();
  }

  /// Jobs of several scopes leave one record each, which share no stage. A misfit stands for itself.
  Status groupByNode() {
    std::map<std::pair<std::string, uint32_t>, size_t> counts;  // by node and stage
    std::map<std::string, size_t> indices;                      // of the nodes, by name
    for (size_t i = 0; i < records_.nodes.size(); ++i) {
      const NodeSummary& node = records_.nodes[i];
      size_t at = fleet_.records.size();
      if (misfits_[i].empty()) at = indices.try_emplace(node.node, at).first->second;
      fleet_.records.resize(std::max(at + 1, fleet_.records.size()));
      fleet_.records[at].push_back(i);
      if (!misfits_[i].empty()) continue;
      for (const auto& stage : node.stages)
        if (stage.state != StageState::kElsewhere && !names_.texts[stage.name].starts_with("muster:"))
          ++counts[{node.node, stage.name}];
    }
    for (const auto& [key, count] : counts)
      if (count > 1)
        return refusal(fmt::format("{} records are of node {} and hold stage {}; keep only the latest", count,
                                   key.first, names_.texts[key.second]));
    return {};
  }

  /// One machine under many names would agree with itself.
  [[nodiscard]] Status checkMachines() const {
    fleet::FleetNodes nodes;
    for (const std::vector<size_t>& own : fleet_.records)
      if (misfits_[own.front()].empty()) {
        fleet::FleetNode& node = nodes.emplace_back();
        node.name = records_.nodes[own.front()].node;
        node.records.assign(own.begin(), own.end());
      }
    fleet::FleetRun run;
    run.simulated = fleet_.simulated;
    const auto found = fleet::checkIdentities(records_, {}, run, nodes).findings;
    if (found.empty()) return {};
    return refusal(fmt::format("{}; limits are learned from machines that differ: keep one record of each",
                               found.front().text));
  }

  /// What most records say counts, and the others are left out: no single one decides for the rest.
  Status compare(const Aspect& aspect) {
    const auto all = votes([&](const NodeSummary& n) { return aspect.of(n, kAllDigits); });
    const std::string most = mostVoted(all);
    const size_t count = all.at(most);
    const auto isMost = [&](const auto& value) { return isMajority(value.second, nodeCount_); };
    if (std::count_if(all.begin(), all.end(), isMost) != 1)
      return refusal(
          fmt::format("{}: no value has a majority: {}; {}", aspect.name, shown(aspect), aspect.next));
    const auto example = std::find_if(records_.nodes.begin(), records_.nodes.end(),
                                      [&](const NodeSummary& n) { return aspect.of(n, kAllDigits) == most; });
    for (size_t i = 0; i < records_.nodes.size(); ++i) {
      const NodeSummary& node = records_.nodes[i];
      if (!misfits_[i].empty() || aspect.of(node, kAllDigits) == most) continue;
      misfits_[i] = fmt::format("{} {}; {} of {} nodes have {}", aspect.name,
                                printable(aspect.of(node, kShownDigits), 160), count, nodeCount_,
                                printable(aspect.of(*example, kShownDigits), 160));
    }
    return {};
  }

  [[nodiscard]] std::string shown(const Aspect& aspect) const {
    return votesText(votes([&](const NodeSummary& n) { return aspect.of(n, kShownDigits); }));
  }

  /// Why this node, by itself, is no example, whatever its verdicts.
  [[nodiscard]] static std::string misfit(const NodeSummary& node) {
    for (const auto& device : node.devices)
      if (device.name != node.devices.front().name)
        return "devices of several models: " + printable(kDevices.of(node, kShownDigits), 160);
    if (!node.partial.empty()) return node.partial;
    return node.acceptance == Acceptance::kInterrupted ? "its run was interrupted" : "";
  }

  /// Why its verdicts make this node no example of a healthy one; empty: nothing speaks against it.
  [[nodiscard]] std::string sickness(const NodeSummary& node) const {
    size_t bad = 0;
    std::string first;
    for (const auto& deviation : node.deviations) {
      if (speaksAgainst(deviation.outcome) && ++bad == 1)
        first = fmt::format("{}{} {}",
                            names_.texts[deviation.metric].empty() ? names_.texts[deviation.stage]
                                                                   : names_.texts[deviation.metric],
                            deviation.device.empty() ? "" : " of " + deviation.device,
                            outcomeName(deviation.outcome));
    }
    if (bad > 1) first += fmt::format(" and {} more", bad - 1 + node.deviationsLeft);
    return first;
  }

  void gatherNodes() {
    int best = 0;  // a healthy node, else one that only failed
    for (size_t i = 0; i < fleet_.records.size(); ++i) {
      const size_t first = fleet_.records[i].front();
      const NodeSummary& node = records_.nodes[first];
      LearnNode entry;
      entry.name = node.node;
      entry.misfit = !misfits_[first].empty();
      entry.sick = misfits_[first];
      for (const size_t own : fleet_.records[i])
        if (entry.sick.empty()) entry.sick = sickness(records_.nodes[own]);
      for (const auto& device : node.devices) entry.devices.push_back(device.id);
      const int worth = entry.misfit ? 0 : entry.sick.empty() ? 2 : 1;
      if (worth > best) fleet_.example = i;
      best = std::max(best, worth);
      fleet_.input.nodes.push_back(std::move(entry));
    }
  }

  void gatherFigures() {
    // By text first: the same order whichever record was read first. A record that defines a metric
    // differently makes a group of its own.
    std::map<std::tuple<std::string, std::string, Direction, std::string>, LearnGroup> groups;
    std::vector<int> nodeOf(records_.nodes.size());
    for (size_t i = 0; i < fleet_.records.size(); ++i)
      for (const size_t record : fleet_.records[i]) nodeOf[record] = static_cast<int>(i);
    std::map<std::string, int> numbers;
    const auto placeNumber = [&](const std::string& place) {
      const auto [at, isNew] = numbers.try_emplace(place, static_cast<int>(numbers.size()));
      if (isNew) fleet_.input.places.push_back(place);
      return at->second;
    };
    for (size_t i = 0; i < records_.nodes.size(); ++i) {
      if (!misfits_[i].empty()) continue;
      for (const fleet::Figure& figure : records_.nodes[i].figures) {
        const fleet::FigureKey& key = names_.figures[figure.key];
        const bool ofHealth = key.metric.rfind("env.", 0) == 0;
        if (key.informational || ofHealth || key.direction == Direction::kNone ||
            kReached.count(key.unit) == 0)
          continue;
        LearnGroup group{key.stage, key.metric, key.labels, key.unit, key.direction, key.peak, {}};
        Labels place = group.where;
        std::erase_if(place, [](const auto& label) { return kPlaces.count(label.first) == 0; });
        std::erase_if(group.where, [](const auto& label) { return kPlaces.count(label.first) > 0; });
        std::tuple identity{group.text(), key.unit, key.direction, key.peak};
        LearnGroup& at = groups.try_emplace(std::move(identity), std::move(group)).first->second;
        at.figures.push_back({nodeOf[i], figure.device, static_cast<double>(figure.compared), figure.n,
                              place.empty() ? -1 : placeNumber(labelsText(place))});
      }
    }
    for (auto& [identity, group] : groups) fleet_.input.groups.push_back(std::move(group));
  }

  /// The value of one inventory fact, of the node or of its first device.
  [[nodiscard]] std::string factOf(const NodeSummary& node, std::string_view name) const {
    for (const fleet::Fact& fact : node.facts)
      if (fact.device <= 0 && names_.texts[fact.name] == name) return names_.texts[fact.value];
    return "";
  }

  [[nodiscard]] std::string software() {
    std::vector<std::string> parts;
    for (const auto& [fact, shown] : {std::pair{"driver", "driver"},
                                      {"cuda", "CUDA"},
                                      {"cudnn", "cuDNN"},
                                      {"nccl", "NCCL"},
                                      {"vbios", "VBIOS"}}) {
      std::map<std::string, size_t> counts;
      for (const NodeSummary& node : records_.nodes) {
        std::string value = factOf(node, std::string("software.") + fact);
        if (value.empty()) value = factOf(node, fact);
        if (!value.empty()) ++counts[value];
      }
      if (counts.empty()) continue;
      parts.push_back(std::string(shown) + " " + mostVoted(counts));
      if (counts.size() > 1)
        fleet_.remarks.push_back(
            fmt::format("{} differs: {}; results may differ accordingly", shown, votesText(counts)));
    }
    return parts.empty() ? "driver not stated" : join(parts, ", ");
  }

  void gatherProvenance() {
    double last = 0;
    std::vector<std::string> digests;
    for (const NodeSummary& node : records_.nodes) {
      last = std::max(last, node.finished);
      digests.push_back(node.sha256);
    }
    std::sort(digests.begin(), digests.end());
    Provenance& provenance = fleet_.provenance;
    provenance.date = formatUtc(last).substr(0, 10);
    const NodeSummary& example = records_.nodes[fleet_.records[fleet_.example].front()];
    fleet_.profileName = example.profileName;
    provenance.plan = example.planName;
    provenance.software = software();
    provenance.records = digests.size() == 1 ? digests.front() : sha256Hex(join(digests, "\n"));
    if (fleet_.simulated)
      provenance.scenario = mostVoted(votes([](const NodeSummary& n) { return n.scenario; }));
  }

  const FleetRecords& records_;
  const FleetNames& names_;
  bool ownBase_;
  size_t nodeCount_ = 0;
  std::vector<std::string> misfits_;  ///< why a record is unlike most; empty: it is not
  FleetToLearn fleet_;
};

}  // namespace

std::string votesText(const std::map<std::string, size_t>& votes) {
  std::vector<std::pair<size_t, std::string>> sorted;
  sorted.reserve(votes.size());
  for (const auto& [value, count] : votes) sorted.emplace_back(count, value);
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<std::string> parts;
  parts.reserve(sorted.size());
  for (const auto& [count, value] : sorted)
    parts.push_back(fmt::format("{} ({} node{})", printable(value, 80), count, count == 1 ? "" : "s"));
  return join(parts, ", ");
}

std::string mostVoted(const std::map<std::string, size_t>& votes) {
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? "" : most->first;
}

bool speaksAgainst(Outcome outcome) {
  return outcome == Outcome::kFail || outcome == Outcome::kError || outcome == Outcome::kFlaky ||
         outcome == Outcome::kWaived;
}

Result<FleetToLearn> fleetToLearn(const FleetRecords& records, bool ownBase) {
  return Gatherer(records, ownBase).gather();
}

}  // namespace muster
