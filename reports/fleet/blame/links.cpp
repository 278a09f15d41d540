// SPDX-License-Identifier: Apache-2.0
// Finds the end that failed links have in common.
#include "reports/fleet/blame/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "reports/fleet/blame/culprit.h"

namespace muster::fleet {
namespace {

/// A device of a node, or a node.
struct End {
  std::string node;
  std::string device;
  auto operator<=>(const End&) const = default;
};

using Ends = std::pair<End, End>;

/// The ends of a link between two nodes, or between two devices of a node; nothing where it has no two ends.
std::optional<Ends> endsOf(const Suspect& link) {
  if (link.kind != SuspectKind::kLink) return std::nullopt;
  Ends ends;
  const size_t dash = link.what.find('-');
  if (const std::vector<std::string> nodes = nodesOf(link); nodes.size() == 2)
    ends = {{nodes[0], ""}, {nodes[1], ""}};
  else if (!link.node.empty() && dash != std::string::npos)
    ends = {{link.node, link.what.substr(0, dash)}, {link.node, link.what.substr(dash + 1)}};
  if (ends.first == ends.second) return std::nullopt;
  return ends;
}

/// The failed links that are not explained yet, by their ends.
class LinkTable {
 public:
  explicit LinkTable(const std::vector<Suspect>& suspects) {
    for (size_t i = 0; i < suspects.size(); ++i)
      if (suspects[i].failed)
        if (const std::optional<Ends> ends = endsOf(suspects[i])) {
          links_[ends->first][ends->second].push_back(i);
          links_[ends->second][ends->first].push_back(i);
        }
  }

  /// The end with most partners, two or more. Nothing where an end that touches it has as many: then it
  /// cannot be told which of the two is at fault.
  [[nodiscard]] std::optional<End> common() const {
    size_t most = 2;
    for (const auto& [end, partners] : links_) most = std::max(most, partners.size());
    for (const auto& [end, partners] : links_)
      if (partners.size() == most && !hasRival(end, most)) return end;
    return std::nullopt;
  }

  /// Links between nodes of which neither end has another one; each with its first suspect.
  [[nodiscard]] std::vector<size_t> single() const {
    std::vector<size_t> found;
    for (const auto& [end, partners] : links_)
      if (const auto& [partner, links] = *partners.begin();
          end.device.empty() && partners.size() == 1 && end < partner && links_.at(partner).size() == 1)
        found.push_back(links.front());
    return found;
  }

  /// Takes the links of an end out of the table.
  std::vector<size_t> take(const End& end) {
    std::vector<size_t> taken;
    for (const auto& [partner, links] : links_.at(end)) {
      taken.insert(taken.end(), links.begin(), links.end());
      links_[partner].erase(end);
      if (links_[partner].empty()) links_.erase(partner);
    }
    links_.erase(end);
    return taken;
  }

 private:
  /// Whether another end with as many partners has a link to this one, or a partner in common with it.
  [[nodiscard]] bool hasRival(const End& end, size_t most) const {
    const auto& own = links_.at(end);
    return std::any_of(links_.begin(), links_.end(), [&](const auto& entry) {
      const auto& [other, partners] = entry;
      if (other == end || partners.size() != most) return false;
      return own.contains(other) || std::any_of(own.begin(), own.end(), [&](const auto& partner) {
               return partners.contains(partner.first);
             });
    });
  }
  std::map<End, std::map<End, std::vector<size_t>>> links_;
};

std::string serialOfEnd(const End& end, const FleetRecords& records, const FleetNodes& nodes) {
  for (const FleetNode& node : nodes)
    if (node.name == end.node && !node.records.empty())
      return serialOf(&records.nodes[node.records.front()], end.device);
  return "";
}

/// Whether enough nodes report failed links of `end` for it to be at fault. Where both ends report a link,
/// what only the other one reports is contested: then the end itself must report two, or one beside those of
/// two nodes that have no part in that one.
bool isKnown(const End& end, const std::vector<size_t>& links, const std::vector<Suspect>& suspects) {
  size_t own = 0;
  bool bothReport = false;
  std::set<std::string> others, parties;
  std::map<End, std::set<std::string>> reportersOf;  // by the other end: two tests may report one link
  for (const size_t i : links) {
    const Ends ends = *endsOf(suspects[i]);
    reportersOf[ends.first == end ? ends.second : ends.first].insert(suspects[i].reporters.begin(),
                                                                     suspects[i].reporters.end());
  }
  for (const auto& [partner, reporters] : reportersOf) {
    const bool reports = reporters.contains(end.node);
    own += reports ? 1 : 0;
    bothReport = bothReport || (reports && reporters.size() > 1);
    (reports ? parties : others).insert(reporters.begin(), reporters.end());
  }
  // Node 0 repeats what both ends report.
  for (const std::string& party : parties) others.erase(party);
  if (!bothReport && end.device.empty()) return others.size() + (own > 0 ? 1 : 0) > 1;
  return own > 1 || (own == 1 && others.size() > 1);
}

/// Failed links between nodes.
struct NodeLinks {
  size_t count = 0;
  std::vector<size_t> single{};  ///< of which neither end has another one
  bool onMostNodes = false;      ///< more than half of the nodes report one
};

/// With as many single ones the network itself is bad, and two links of a node may have failed by chance.
constexpr size_t kBadNetwork = 3;

NodeLinks nodeLinksOf(const std::vector<Suspect>& suspects, const LinkTable& table, const FleetNodes& nodes) {
  NodeLinks links;
  links.single = table.single();
  std::set<std::string> reporters;
  for (const Suspect& suspect : suspects) {
    if (const std::optional<Ends> ends = endsOf(suspect);
        !suspect.failed || !ends || !ends->first.device.empty())
      continue;
    ++links.count;
    reporters.insert(suspect.reporters.begin(), suspect.reporters.end());
  }
  const auto measured =
      std::count_if(nodes.begin(), nodes.end(), [](const FleetNode& node) { return !node.records.empty(); });
  links.onMostNodes = 2 * reporters.size() > static_cast<size_t>(measured);
  return links;
}

/// The finding about the end; the worst of its links speaks for it. Where links fail on most nodes, it is at
/// fault only if most of them are its own; where the network is bad, not for two.
Suspect ofEnd(const End& end, const std::vector<size_t>& links, const std::vector<Suspect>& suspects,
              const NodeLinks& all) {
  Suspect suspect = suspects[links.front()];
  suspect.kind = end.device.empty() ? SuspectKind::kNode : SuspectKind::kDevice;
  suspect.node = end.node;
  suspect.what = end.device;
  suspect.evidence = {fmt::format(
      "{} links of {} are slow or failed; {}", links.size(), end.device.empty() ? end.node : end.device,
      suspects[links.front()].evidence.empty() ? "" : suspects[links.front()].evidence.front())};
  // Not by its own word.
  const auto reported =
      static_cast<size_t>(std::count_if(all.single.begin(), all.single.end(), [&](size_t i) {
        const std::set<std::string>& reporters = suspects[i].reporters;
        return reporters.size() > (reporters.contains(end.node) ? 1U : 0U);
      }));
  const bool oneOfMany = end.device.empty() && ((all.onMostNodes && 2 * links.size() <= all.count) ||
                                                (links.size() <= 2 && reported >= kBadNetwork));
  suspect.ofPair = isKnown(end, links, suspects) && !oneOfMany &&
                   std::any_of(links.begin(), links.end(), [&](size_t i) { return suspects[i].ofPair; });
  suspect.endOfLinks = end.device.empty() && !suspect.ofPair;
  for (const size_t i : links) {
    suspect.confirmedEnds.merge(confirmedEnds(suspects[i]));
    suspect.partners.insert(suspects[i].partners.begin(), suspects[i].partners.end());
    suspect.reporters.insert(suspects[i].reporters.begin(), suspects[i].reporters.end());
    for (std::string& node : nodesOf(suspects[i]))
      if (node != end.node) suspect.partners.insert(std::move(node));
    suspect.grade = std::min(suspect.grade, suspects[i].grade);
    suspect.stages.insert(suspects[i].stages.begin(), suspects[i].stages.end());
    if (suspect.beneath.size() < kMostNamed)
      suspect.beneath.push_back(suspects[i].name() + ": " +
                                (suspects[i].evidence.empty() ? "" : suspects[i].evidence.front()));
    else
      ++suspect.beneathLeft;
  }
  return suspect;
}

/// A test of pairs knows a node without a record by its number alone, and the ring by its name: a link of one
/// end to both is the same.
void nameTheMissing(std::vector<Suspect>& suspects, const FleetNodes& nodes) {
  std::map<std::string, bool> hasRecord;
  for (const FleetNode& node : nodes) hasRecord[node.name] = !node.records.empty();
  std::map<std::string, std::string> missing;            // by end, a partner without a record
  std::vector<std::tuple<size_t, std::string>> unnamed;  // links, with the end that has a name
  for (size_t i = 0; i < suspects.size(); ++i) {
    const std::vector<std::string> ends = nodesOf(suspects[i]);
    if (suspects[i].kind != SuspectKind::kLink || ends.size() != 2) continue;
    for (const auto& [end, other] : {std::pair(ends[0], ends[1]), {ends[1], ends[0]}})
      if (const auto at = hasRecord.find(other); at == hasRecord.end())
        unnamed.emplace_back(i, end);
      else if (!at->second)
        missing.emplace(end, other);
  }
  for (const auto& [i, end] : unnamed)
    if (const auto at = missing.find(end); at != missing.end()) suspects[i].what = linkName(end, at->second);
}

}  // namespace

std::set<std::string> confirmedEnds(const Suspect& links) {
  if (!links.failed) return {};
  if (links.kind != SuspectKind::kLink)
    return links.endOfLinks ? links.confirmedEnds : std::set<std::string>();
  const std::vector<std::string> ends = nodesOf(links);
  const bool both =
      ends.size() == 2 && links.reporters.contains(ends[0]) && links.reporters.contains(ends[1]);
  return both ? std::set<std::string>(ends.begin(), ends.end()) : std::set<std::string>();
}

std::vector<Suspect> foldLinks(std::vector<Suspect> suspects, const FleetRecords& records,
                               const FleetNodes& nodes) {
  nameTheMissing(suspects, nodes);
  LinkTable table(suspects);
  const NodeLinks all = nodeLinksOf(suspects, table, nodes);
  std::vector<bool> folded(suspects.size(), false);
  std::vector<Suspect> found;
  while (const std::optional<End> common = table.common()) {
    const End& end = *common;
    const std::vector<size_t> links = table.take(end);
    for (const size_t i : links) folded[i] = true;
    Suspect suspect = ofEnd(end, links, suspects, all);
    if (!end.device.empty()) suspect.serial = serialOfEnd(end, records, nodes);
    found.push_back(std::move(suspect));
  }
  for (size_t i = 0; i < suspects.size(); ++i)
    if (!folded[i]) found.push_back(std::move(suspects[i]));
  return found;
}

}  // namespace muster::fleet
