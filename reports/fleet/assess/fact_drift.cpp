// SPDX-License-Identifier: Apache-2.0
// Compares the inventory facts of nodes of like SKU.
#include "reports/fleet/assess/fact_drift.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <set>

#include "reports/fleet/peers/drift.h"
#include "runner/core/units.h"

namespace muster::fleet {
namespace {

constexpr size_t kMostDrifts = 200;
constexpr size_t kMostValues = 20;
static_assert(kMostNamed <= kMostLacking);

/// A node, or one of its devices.
using Place = std::pair<size_t, int16_t>;

/// Bytes, by the name of their fact, with a unit; all else as it is.
std::string factText(std::string_view fact, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool isNumber = error == std::errc() && end == text.data() + text.size();
  return isNumber && fact.ends_with("_bytes") ? formatQuantity(value, "B") : text;
}

using Values = std::vector<std::pair<Place, uint32_t>>;

/// All nodes of one SKU: who could have a fact, and who has which value. A record may bring a thousand facts
/// of its own and as many devices, so no fact may cost more than those who have it.
struct SkuFacts {
  std::vector<Place> nodes;
  std::vector<Place> devices;
  std::map<std::string, std::vector<Place>> positions;  ///< the devices by their id
  std::map<std::pair<std::string, bool>, Values> facts;
};

class DriftFinder {
 public:
  DriftFinder(const FleetRecords& records, const FleetNodes& nodes) : records_(records), nodes_(nodes) {}

  std::vector<FactDrift> find() {
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (!nodes_[i].records.empty()) addNode(i);
    std::vector<FactDrift> all;
    for (auto& [sku, group] : skus_)
      for (auto& [fact, values] : group.facts) {
        judge(sku, fact.first, fact.second, group, values, all);
        if (all.size() > 2 * kMostDrifts) keepFewestOdd(all);
      }
    keepFewestOdd(all);
    return all;
  }

 private:
  static void keepFewestOdd(std::vector<FactDrift>& all) {
    std::stable_sort(all.begin(), all.end(), [](const FactDrift& a, const FactDrift& b) {
      return a.total - a.agree < b.total - b.agree;
    });
    if (all.size() > kMostDrifts) all.resize(kMostDrifts);
  }

  void addNode(size_t i) {
    const FleetNode& node = nodes_[i];
    const NodeSummary& record = records_.nodes[node.records.front()];
    // By what a node must be: one of another SKU differs from the others in what makes it another.
    SkuFacts& group = skus_[node.expectedSku.empty() ? node.sku : node.expectedSku];
    group.nodes.emplace_back(i, int16_t{-1});
    for (size_t d = 0; d < record.devices.size(); ++d)
      if (record.devices[d].kind != "other") {
        group.devices.emplace_back(i, static_cast<int16_t>(d));
        group.positions[record.devices[d].id].push_back(group.devices.back());
      }
    for (const Fact& fact : record.facts)
      valuesOf(group, fact).emplace_back(Place(i, fact.device), fact.value);
  }

  /// Names are few and texts long: each number is looked up once per SKU.
  Values& valuesOf(SkuFacts& group, const Fact& fact) {
    auto& known = known_[{&group, fact.name, fact.device >= 0}];
    if (known == nullptr) known = &group.facts[{records_.names->texts[fact.name], fact.device >= 0}];
    return *known;
  }

  [[nodiscard]] std::string nameOf(const Place& place) const {
    const FleetNode& node = nodes_[place.first];
    if (place.second < 0) return node.name;
    return node.name + " " + positionOf(place);
  }

  [[nodiscard]] const std::string& positionOf(const Place& place) const {
    return records_.nodes[nodes_[place.first].records.front()].devices[static_cast<size_t>(place.second)].id;
  }

  [[nodiscard]] std::string textOf(uint32_t value) const {
    return value == kNoFact ? "(none)" : records_.names->texts[value];
  }

  /// How the values of a fact are shown: exactly, where rounding would make two of them alike.
  [[nodiscard]] std::function<std::string(uint32_t)> wordsFor(const std::string& fact,
                                                              const Drift& drift) const {
    std::set<std::string> rounded;
    for (const FactShare& share : drift.shares) rounded.insert(factText(fact, textOf(share.value)));
    const bool distinct = rounded.size() == drift.shares.size();
    return [this, fact, distinct](uint32_t value) {
      return distinct ? factText(fact, textOf(value)) : textOf(value);
    };
  }

  /// The values by the number of their holder, each of which has one.
  static std::vector<FactValue> numbered(const std::vector<Place>& holders, Values& values) {
    std::sort(values.begin(), values.end());
    std::vector<FactValue> all;
    for (const auto& [place, value] : values) {
      const auto at = std::lower_bound(holders.begin(), holders.end(), place);
      if (at == holders.end() || *at != place) continue;
      const auto holder = static_cast<size_t>(at - holders.begin());
      if (all.empty() || all.back().holder != holder) all.push_back({holder, value});
    }
    return all;
  }

  void judge(const std::string& sku, const std::string& fact, bool ofDevices, const SkuFacts& group,
             Values& values, std::vector<FactDrift>& all) const {
    const std::optional<FactDrift> whole =
        compare(sku, fact, ofDevices ? group.devices : group.nodes, values);
    if (!whole) return;
    if (!ofDevices) return all.push_back(*whole);
    // Those of one position alone: gpu4 may well have another NUMA node than gpu0, on all nodes.
    std::map<std::string, Values> byPosition;
    for (const auto& value : values) byPosition[positionOf(value.first)].push_back(value);
    std::vector<FactDrift> parts;
    std::set<std::string> majorities;
    size_t having = 0;
    for (auto& [position, part] : byPosition) {
      const auto holders = group.positions.find(position);
      if (holders != group.positions.end()) ++having;
      std::optional<FactDrift> found = holders == group.positions.end()
                                           ? std::nullopt
                                           : compare(sku, position + " " + fact, holders->second, part);
      majorities.insert(found ? found->majority : textOf(part.front().second));
      if (found) parts.push_back(std::move(*found));
    }
    if (parts.empty()) return;
    if (having < group.positions.size()) majorities.insert("");
    // Alike at every position: one finding says it better than one for each.
    if (majorities.size() == 1) return all.push_back(*whole);
    std::move(parts.begin(), parts.end(), std::back_inserter(all));
  }

  /// Nothing where all agree, or where each has a value of its own.
  [[nodiscard]] std::optional<FactDrift> compare(const std::string& sku, const std::string& fact,
                                                 const std::vector<Place>& holders, Values& values) const {
    Drift drift = driftOf(numbered(holders, values), holders.size());
    if (drift.kind == DriftKind::kUniform || drift.kind == DriftKind::kPersonal) return std::nullopt;
    // By text: the numbers depend on which record came first.
    std::sort(drift.shares.begin(), drift.shares.end(), [&](const FactShare& a, const FactShare& b) {
      return a.count != b.count ? a.count > b.count : textOf(a.value) < textOf(b.value);
    });
    const auto shown = wordsFor(fact, drift);
    FactDrift found;
    found.sku = sku;
    found.fact = fact;
    found.ofDevices = !holders.empty() && holders.front().second >= 0;
    found.total = drift.holders;
    found.text = driftText(fact, drift, shown, [&](size_t h) { return nameOf(holders[h]); });
    for (const FactShare& share : drift.shares) {
      if (drift.kind == DriftKind::kDrift && found.majority.empty()) {
        found.majority = shown(share.value);
        found.agree = share.count;
        continue;
      }
      if (found.odd.size() == kMostValues) break;
      FactDrift::Odd odd{shown(share.value), share.count, {}};
      for (size_t i = 0; i < std::min(share.count, kMostNamed); ++i)
        odd.where.push_back(nameOf(holders[share.holders[i]]));
      found.odd.push_back(std::move(odd));
    }
    std::reverse(found.odd.begin(), found.odd.end());
    return found;
  }

  const FleetRecords& records_;
  const FleetNodes& nodes_;
  std::map<std::string, SkuFacts> skus_;
  std::map<std::tuple<SkuFacts*, uint32_t, bool>, Values*> known_;
};

}  // namespace

std::vector<FactDrift> findFactDrift(const FleetRecords& records, const FleetNodes& nodes) {
  return DriftFinder(records, nodes).find();
}

}  // namespace muster::fleet
