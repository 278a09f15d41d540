// SPDX-License-Identifier: Apache-2.0
// Sorts findings by severity and merges those that share a cause.
#include "reports/fleet/blame/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reports/fleet/blame/culprit.h"
#include "reports/fleet/blame/links.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

constexpr const char* kKindNames[] = {"group", "switch", "rail", "node", "link", "device"};
constexpr const char* kClassNames[] = {"correctness", "missing", "limit", "unmeasured", "outlier"};

constexpr std::string_view kMissingParts[] = {"device_lost", "device_count", "missing", "port_active",
                                              "sku_mismatch"};
constexpr std::string_view kWrongResults[] = {
    "wrong",     "mismatch",       "corrupt",         "diverged",           "ecc_",         "xid_fatal",
    "row_remap", "pattern_errors", "hardware_errors", "errors_uncorrected", "memory_errors"};

template <size_t N>
bool hasAny(std::string_view text, const std::string_view (&words)[N]) {
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

void addEvidence(Suspect& suspect, const std::string& line) {
  if (suspect.evidence.size() < kMostEvidence &&
      std::find(suspect.evidence.begin(), suspect.evidence.end(), line) == suspect.evidence.end())
    suspect.evidence.push_back(line);
}

void addBeneath(Suspect& suspect, const std::string& line) {
  if (std::find(suspect.beneath.begin(), suspect.beneath.end(), line) != suspect.beneath.end()) return;
  if (suspect.beneath.size() < kMostNamed)
    suspect.beneath.push_back(line);
  else
    ++suspect.beneathLeft;
}

/// Takes what speaks against the same part into `into`.
void merge(Suspect& into, const Suspect& other) {
  // An outlier does not make a fault of the node of what its links failed.
  into.endOfLinks = (into.endOfLinks || other.endOfLinks) && (into.endOfLinks || !into.failed) &&
                    (other.endOfLinks || !other.failed);
  into.confirmedEnds.insert(other.confirmedEnds.begin(), other.confirmedEnds.end());
  if (other.byPeers && !other.evidence.empty() && into.evidence.size() == kMostEvidence)
    into.evidence.pop_back();
  for (const std::string& line : other.evidence) addEvidence(into, line);
  for (const std::string& line : other.beneath) addBeneath(into, line);
  into.beneathLeft += other.beneathLeft;
  into.byBoth = into.byBoth || other.byBoth || into.byPeers != other.byPeers;
  into.byPeers = into.byPeers || other.byPeers;
  // Where it failed says more than where it is an outlier.
  if (other.failed && !into.failed) into.stages.clear();
  if (other.failed || !into.failed) into.stages.insert(other.stages.begin(), other.stages.end());
  into.failed = into.failed || other.failed;
  into.unmeasured = into.unmeasured || other.unmeasured;
  into.grade = std::min(into.grade, other.grade);
  if (into.serial.empty()) into.serial = other.serial;
  if (into.next.empty()) into.next = other.next;
  into.located = into.located || other.located;
  into.partners.insert(other.partners.begin(), other.partners.end());
  into.reporters.insert(other.reporters.begin(), other.reporters.end());
  into.contested = !into.failed && (into.contested || other.contested);
  into.members.insert(other.members.begin(), other.members.end());
  into.wrongData = into.wrongData || other.wrongData;
  if (into.limitSource.empty()) into.limitSource = other.limitSource;
}

bool isAboutSpeed(const Suspect& suspect) {
  return suspect.grade == FindingClass::kLimit || suspect.grade == FindingClass::kOutlier;
}

/// What to do about a part whose failures come without a remedy.
std::string defaultNext(SuspectKind kind) {
  switch (kind) {
    case SuspectKind::kGroup:
      return "Bisect: rerun the stage on halves of the group until one node or link remains";
    case SuspectKind::kLink:
      return "Check the cable and both ports, then run the stage again";
    case SuspectKind::kSwitch:
    case SuspectKind::kRail:
      return "Check the switch, its ports and cables, then run the stage again";
    default:
      return "Rerun the stage on this node alone; if it fails again, check its output, dmesg and the device";
  }
}

/// What a device, rail or link says beneath the finding of its node.
std::string lineOf(const Suspect& suspect) {
  return suspect.name() + (suspect.serial.empty() ? "" : " (serial " + suspect.serial + ")") +
         (suspect.evidence.empty() ? "" : ": " + suspect.evidence.front());
}

/// Speed findings about one node, and about parts of it.
struct SlowNode {
  std::vector<size_t> whole;
  std::vector<size_t> parts;  ///< devices, rails and links within the node
  std::vector<size_t> links;  ///< to other nodes
};

/// A device, or a port.
bool isSinglePart(const Suspect& suspect) {
  return suspect.kind == SuspectKind::kDevice || suspect.kind == SuspectKind::kRail;
}

/// Stages in which more than half of a node's devices, or as many ports, (three or more) are behind: then the
/// node is.
std::set<std::string> commonStages(const SlowNode& slow, const std::vector<Suspect>& suspects,
                                   size_t devices) {
  std::map<std::string, size_t> counts;
  for (const size_t i : slow.parts)
    if (isSinglePart(suspects[i]))
      for (const std::string& stage : suspects[i].stages) ++counts[stage];
  std::set<std::string> common;
  for (const auto& [stage, count] : counts)
    if (count >= kWholeNode && 2 * count > devices) common.insert(stage);
  return common;
}

/// A finding of the node itself, where only its parts have one.
Suspect wholeNode(const FleetNode& node, const SlowNode& slow, const std::vector<Suspect>& suspects,
                  const std::set<std::string>& stages) {
  Suspect suspect;
  suspect.kind = SuspectKind::kNode;
  suspect.node = node.name;
  const Suspect* worst = nullptr;
  size_t count = 0;
  for (const size_t i : slow.parts) {
    const Suspect& part = suspects[i];
    if (!isSinglePart(part) || std::none_of(part.stages.begin(), part.stages.end(),
                                            [&](const auto& stage) { return stages.contains(stage); }))
      continue;
    ++count;
    suspect.byPeers = suspect.byPeers || (part.byPeers && !part.byBoth);
    if (worst == nullptr || part.grade < worst->grade) worst = &part;
    suspect.failed = suspect.failed || part.failed;
    suspect.unmeasured = suspect.unmeasured || part.unmeasured;
    suspect.grade = std::min(suspect.grade, part.grade);
  }
  if (suspect.failed) suspect.byPeers = false;
  suspect.stages = stages;
  const bool ports = worst->kind == SuspectKind::kRail;
  suspect.evidence.push_back(fmt::format(
      "{} are slow in {}; {}: {}",
      ports ? fmt::format("{} ports", count) : fmt::format("{} of {} devices", count, node.devices),
      join(std::vector(stages.begin(), stages.end()), ", "), worst->what,
      worst->evidence.empty() ? "" : worst->evidence.front()));
  suspect.next = worst->next;
  suspect.limitSource = worst->limitSource;
  return suspect;
}

/// Puts the number of stages first: several stages point to a cause shared by the whole node.
void tellStages(Suspect& whole) {
  const std::vector<std::string> stages(whole.stages.begin(), whole.stages.end());
  whole.evidence.insert(whole.evidence.begin(),
                        fmt::format("slow in {} stages: {}", stages.size(), join(stages, ", ")));
  if (whole.evidence.size() > kMostEvidence) whole.evidence.pop_back();
  whole.next = "First check causes shared by the whole node: power cap, clocks, cooling, other workloads. " +
               whole.next;
}

}  // namespace

const char* suspectKindName(SuspectKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

const char* findingClassName(FindingClass grade) {
  return kClassNames[static_cast<size_t>(grade)];
}

std::string Suspect::name() const {
  std::string text = suspectKindName(kind);
  if (node.empty() && what.starts_with(text + " ")) return what;  // "rail 3", as the ring names it
  for (const std::string& part : {node, what})
    if (!part.empty()) text += " " + part;
  return text;
}

bool explains(const Suspect& part, const Suspect& group, const std::set<std::string>& stages) {
  if (!part.failed || part.kind == SuspectKind::kGroup) return false;
  if (group.wrongData && part.grade > FindingClass::kCorrectness) return false;
  const std::set<std::string>& where = part.located && !group.wrongData ? stages : group.stages;
  return std::any_of(part.stages.begin(), part.stages.end(),
                     [&](const std::string& stage) { return where.contains(stage); });
}

FindingClass gradeOf(const DeviationSummary& d, const FleetNames& names) {
  const std::string& metric = names.texts[d.metric];
  if (hasAny(metric, kMissingParts)) return FindingClass::kMissing;
  if (d.outcome == Outcome::kError) return FindingClass::kUnmeasured;
  return hasAny(metric, kWrongResults) ? FindingClass::kCorrectness : FindingClass::kLimit;
}

std::vector<Suspect> foldSlowNodes(std::vector<Suspect> suspects, const FleetNodes& nodes) {
  std::map<std::string, SlowNode> slowNodes;
  for (size_t i = 0; i < suspects.size(); ++i) {
    const Suspect& suspect = suspects[i];
    if (!isAboutSpeed(suspect)) continue;
    const std::vector<std::string> names = nodesOf(suspect);
    for (const std::string& name : names) {
      SlowNode& slow = slowNodes[name];
      (names.size() > 1                     ? slow.links
       : suspect.kind == SuspectKind::kNode ? slow.whole
                                            : slow.parts)
          .push_back(i);
    }
  }
  std::vector<bool> folded(suspects.size(), false);
  std::vector<Suspect> found;
  for (const FleetNode& node : nodes) {
    const auto at = slowNodes.find(node.name);
    if (at == slowNodes.end()) continue;
    const SlowNode& slow = at->second;
    const std::set<std::string> common = commonStages(slow, suspects, node.devices);
    if (slow.whole.empty() && common.empty()) continue;
    Suspect whole = common.empty() ? Suspect{} : wholeNode(node, slow, suspects, common);
    for (const size_t i : slow.whole) {
      if (whole.node.empty())
        whole = suspects[i];
      else
        merge(whole, suspects[i]);
      folded[i] = true;
    }
    const auto belongs = [&](const Suspect& part) {
      return std::all_of(part.stages.begin(), part.stages.end(),
                         [&](const auto& stage) { return whole.stages.contains(stage); });
    };
    for (const auto* parts : {&slow.links, &slow.parts})
      for (const size_t i : *parts) {
        const bool isLink = parts == &slow.links;
        if (folded[i] || whole.contested || !belongs(suspects[i])) continue;
        // A link that failed rejects neither end, also where one is slow within its limits.
        if (isLink && (suspects[i].failed || suspects[i].unmeasured) && !whole.failed) continue;
        if (isLink) whole.confirmedEnds.merge(confirmedEnds(suspects[i]));
        addBeneath(whole, lineOf(suspects[i]));
        whole.failed = whole.failed || suspects[i].failed;
        whole.unmeasured = whole.unmeasured || suspects[i].unmeasured;
        whole.located = whole.located || suspects[i].located;
        whole.grade = std::min(whole.grade, suspects[i].grade);
        folded[i] = true;
      }
    if (whole.stages.size() > 1) tellStages(whole);
    found.push_back(std::move(whole));
  }
  size_t kept = 0;
  for (size_t i = 0; i < suspects.size(); ++i)
    if (!folded[i]) {
      if (kept != i) suspects[kept] = std::move(suspects[i]);
      ++kept;
    }
  suspects.resize(kept);
  std::move(found.begin(), found.end(), std::back_inserter(suspects));
  return suspects;
}

OrderedSuspects orderSuspects(std::vector<Suspect> suspects, FleetNodes& nodes) {
  const auto part = [](const Suspect& s) { return std::tie(s.kind, s.node, s.what); };
  std::stable_sort(suspects.begin(), suspects.end(), [&](const Suspect& a, const Suspect& b) {
    // A missed limit says more than a distance to the peers: it is told first.
    return std::tuple(part(a), a.byPeers, a.grade) < std::tuple(part(b), b.byPeers, b.grade);
  });
  std::vector<Suspect> merged;
  for (Suspect& suspect : suspects)
    if (merged.empty() || part(merged.back()) != part(suspect))
      merged.push_back(std::move(suspect));
    else
      merge(merged.back(), suspect);
  std::stable_sort(merged.begin(), merged.end(),
                   [](const Suspect& a, const Suspect& b) { return a.grade < b.grade; });
  for (Suspect& suspect : merged)
    if (suspect.next.empty()) suspect.next = defaultNext(suspect.kind);
  std::set<std::string> named, ends;
  for (const Suspect& suspect : merged) {
    for (const std::string& node : nodesOf(suspect)) named.insert(node);
    ends.merge(confirmedEnds(suspect));
  }
  for (FleetNode& node : nodes) {
    node.suspect = named.contains(node.name);
    node.endOfLink = ends.contains(node.name);
  }
  OrderedSuspects ordered{std::move(merged), 0};
  cutTo(kMostJudged, ordered);
  return ordered;
}

void cutTo(size_t most, OrderedSuspects& suspects) {
  if (suspects.list.size() <= most) return;
  suspects.left += suspects.list.size() - most;
  suspects.list.resize(most);
}

}  // namespace muster::fleet
