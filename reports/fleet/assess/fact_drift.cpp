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

/// A node, or one of its devices.
using Place = std::pair<size_t, int16_t>;

/// Bytes, by the name of their fact, with a unit; all else as it is.
std::string factText(std::string_view fact, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool isNumber = error == std::errc() && end == text.data() + text.size();
  return isNumber && fact.ends_with("_bytes") ? formatQuantity(value, "B") : text;
}

/// All nodes of one SKU: who could have a fact, and who has which value.
struct SkuFacts {
  std::vector<Place> nodes;
  std::vector<Place> devices;
  std::map<std::pair<std::string, bool>, std::vector<std::pair<Place, uint32_t>>> facts;
};

class DriftFinder {
 public:
  DriftFinder(const FleetRecords& records, const FleetNodes& nodes) : records_(records), nodes_(nodes) {}

  std::vector<FactDrift> find() {
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (!nodes_[i].records.empty()) addNode(i);
    std::vector<FactDrift> all;
    for (auto& [sku, group] : skus_)
      for (auto& [fact, values] : group.facts)
        judge(sku, fact.first, fact.second ? group.devices : group.nodes, fact.second, values, all);
    std::stable_sort(all.begin(), all.end(), [](const FactDrift& a, const FactDrift& b) {
      return a.total - a.agree < b.total - b.agree;
    });
    if (all.size() > kMostDrifts) all.resize(kMostDrifts);
    return all;
  }

 private:
  void addNode(size_t i) {
    const FleetNode& node = nodes_[i];
    const NodeSummary& record = records_.nodes[node.records.front()];
    // By what a node must be: one of another SKU differs from the others in what makes it another.
    SkuFacts& group = skus_[node.expectedSku.empty() ? node.sku : node.expectedSku];
    group.nodes.emplace_back(i, int16_t{-1});
    for (size_t d = 0; d < record.devices.size(); ++d)
      if (record.devices[d].kind != "other") group.devices.emplace_back(i, static_cast<int16_t>(d));
    for (const Fact& fact : record.facts)
      valuesOf(group, fact).emplace_back(Place(i, fact.device), fact.value);
  }

  /// Names are few and texts long: each number is looked up once per SKU.
  std::vector<std::pair<Place, uint32_t>>& valuesOf(SkuFacts& group, const Fact& fact) {
    auto& known = known_[{&group, fact.name, fact.device >= 0}];
    if (known == nullptr) known = &group.facts[{records_.names->texts[fact.name], fact.device >= 0}];
    return *known;
  }

  [[nodiscard]] std::string nameOf(const Place& place) const {
    const FleetNode& node = nodes_[place.first];
    if (place.second < 0) return node.name;
    return node.name + " " +
           records_.nodes[node.records.front()].devices[static_cast<size_t>(place.second)].id;
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

  /// Both lists are in the order of nodes and devices; who is missing in `values` lacks the fact.
  static std::vector<FactValue> complete(const std::vector<Place>& holders,
                                         std::vector<std::pair<Place, uint32_t>>& values) {
    std::sort(values.begin(), values.end());
    std::vector<FactValue> all;
    auto at = values.begin();
    for (size_t h = 0; h < holders.size(); ++h) {
      while (at != values.end() && at->first < holders[h]) ++at;
      const bool has = at != values.end() && at->first == holders[h];
      all.push_back({h, has ? at->second : kNoFact});
    }
    return all;
  }

  using Values = std::vector<std::pair<Place, uint32_t>>;

  /// Of a fact of devices, those of one position alone: gpu4 may well have another NUMA node than gpu0, on
  /// all nodes.
  [[nodiscard]] std::map<std::string, std::pair<std::vector<Place>, Values>> byPosition(
      const std::vector<Place>& holders, const Values& values) const {
    const auto position = [&](const Place& place) {
      return records_.nodes[nodes_[place.first].records.front()]
          .devices[static_cast<size_t>(place.second)]
          .id;
    };
    std::map<std::string, std::pair<std::vector<Place>, Values>> parts;
    for (const Place& holder : holders) parts[position(holder)].first.push_back(holder);
    for (const auto& value : values) parts[position(value.first)].second.push_back(value);
    return parts;
  }

  void judge(const std::string& sku, const std::string& fact, const std::vector<Place>& holders,
             bool ofDevices, Values& values, std::vector<FactDrift>& all) const {
    const std::optional<FactDrift> whole = compare(sku, fact, holders, values);
    if (!whole) return;
    if (!ofDevices) return all.push_back(*whole);
    std::vector<FactDrift> parts;
    std::set<std::string> majorities;
    for (auto& [position, part] : byPosition(holders, values)) {
      std::optional<FactDrift> found = compare(sku, position + " " + fact, part.first, part.second);
      if (!found) {
        majorities.insert(part.second.empty() ? "" : textOf(part.second.front().second));
        continue;
      }
      majorities.insert(found->majority);
      parts.push_back(std::move(*found));
    }
    if (parts.empty()) return;
    // Alike at every position: one finding says it better than one for each.
    if (majorities.size() == 1) return all.push_back(*whole);
    std::move(parts.begin(), parts.end(), std::back_inserter(all));
  }

  /// Nothing where all agree, or where each has a value of its own.
  [[nodiscard]] std::optional<FactDrift> compare(const std::string& sku, const std::string& fact,
                                                 const std::vector<Place>& holders, Values& values) const {
    Drift drift = driftOf(complete(holders, values));
    if (drift.kind == DriftKind::kUniform || drift.kind == DriftKind::kPersonal) return std::nullopt;
    // By text: the numbers depend on which record came first.
    std::sort(drift.shares.begin(), drift.shares.end(), [&](const FactShare& a, const FactShare& b) {
      return a.holders.size() != b.holders.size() ? a.holders.size() > b.holders.size()
                                                  : textOf(a.value) < textOf(b.value);
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
        found.agree = share.holders.size();
        continue;
      }
      if (found.odd.size() == kMostValues) break;
      FactDrift::Odd odd{shown(share.value), share.holders.size(), {}};
      for (size_t i = 0; i < std::min(share.holders.size(), kMostNamed); ++i)
        odd.where.push_back(nameOf(holders[share.holders[i]]));
      found.odd.push_back(std::move(odd));
    }
    std::reverse(found.odd.begin(), found.odd.end());
    return found;
  }

  const FleetRecords& records_;
  const FleetNodes& nodes_;
  std::map<std::string, SkuFacts> skus_;
  std::map<std::tuple<SkuFacts*, uint32_t, bool>, std::vector<std::pair<Place, uint32_t>>*> known_;
};

}  // namespace

std::vector<FactDrift> findFactDrift(const FleetRecords& records, const FleetNodes& nodes) {
  return DriftFinder(records, nodes).find();
}

}  // namespace muster::fleet
