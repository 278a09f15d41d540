// SPDX-License-Identifier: Apache-2.0
// Finds units whose fact differs from the majority.
#include "reports/fleet/peers/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster::fleet {
namespace {

constexpr size_t kMostHolders = 5;  ///< named in a sentence; the rest are counted
constexpr size_t kMostValues = 4;

DriftKind kindOf(const Drift& drift) {
  if (drift.shares.size() <= 1) return DriftKind::kUniform;
  if (drift.holders == 2) return DriftKind::kTooFew;
  const bool lacking = std::any_of(drift.shares.begin(), drift.shares.end(),
                                   [](const FactShare& share) { return share.value == kNoFact; });
  if (drift.shares.size() == drift.holders && !lacking) return DriftKind::kPersonal;
  return drift.shares.front().count * 2 > drift.holders ? DriftKind::kDrift : DriftKind::kSplit;
}

using ValueText = std::function<std::string(uint32_t)>;
using HolderName = std::function<std::string(size_t)>;

std::string quoted(uint32_t value, const ValueText& text) {
  return value == kNoFact ? "nothing" : fmt::format("\"{}\"", text(value));
}

std::string named(const FactShare& share, const HolderName& name) {
  std::string text;
  for (size_t i = 0; i < std::min(share.count, kMostHolders); ++i)
    text += (i == 0 ? "" : ", ") + name(share.holders[i]);
  if (share.count > kMostHolders) text += fmt::format(" and {} more", share.count - kMostHolders);
  return text;
}

/// "nodeA has "1"; nodeB, nodeC have "2"", from the share `first` on.
std::string sharesText(const Drift& drift, size_t first, const ValueText& value, const HolderName& name) {
  std::string text;
  const size_t end = std::min(drift.shares.size(), first + kMostValues);
  for (size_t i = first; i < end; ++i) {
    const FactShare& share = drift.shares[i];
    text += fmt::format("{}{} {} {}", i == first ? "" : "; ", named(share, name),
                        share.count == 1 ? "has" : "have", quoted(share.value, value));
  }
  if (end < drift.shares.size()) text += fmt::format("; and {} more values", drift.shares.size() - end);
  return text;
}

std::vector<size_t> firstLacking(const std::vector<FactValue>& values, size_t total) {
  std::vector<size_t> found;
  auto at = values.begin();
  for (size_t h = 0; h < total && found.size() < kMostLacking; ++h)
    if (at != values.end() && at->holder == h)
      ++at;
    else
      found.push_back(h);
  return found;
}

}  // namespace

std::vector<size_t> Drift::drifted() const {
  std::vector<size_t> others;
  if (kind != DriftKind::kDrift) return others;
  for (size_t i = 1; i < shares.size(); ++i)
    others.insert(others.end(), shares[i].holders.begin(), shares[i].holders.end());
  std::sort(others.begin(), others.end());
  return others;
}

Drift driftOf(const std::vector<FactValue>& values, size_t total) {
  Drift drift;
  drift.holders = std::max(values.size(), total);
  std::map<uint32_t, std::vector<size_t>> byValue;
  for (const FactValue& one : values) byValue[one.value].push_back(one.holder);
  for (auto& [value, holders] : byValue) {
    std::sort(holders.begin(), holders.end());
    drift.shares.push_back({value, holders.size(), std::move(holders)});
  }
  if (const size_t lacking = drift.holders - values.size(); lacking > 0)
    drift.shares.push_back({kNoFact, lacking, firstLacking(values, total)});
  std::stable_sort(drift.shares.begin(), drift.shares.end(),
                   [](const FactShare& a, const FactShare& b) { return a.count > b.count; });
  drift.kind = kindOf(drift);
  return drift;
}

std::string driftText(std::string_view fact, const Drift& drift, const ValueText& valueText,
                      const HolderName& holderName) {
  switch (drift.kind) {
    case DriftKind::kUniform:
    case DriftKind::kPersonal:
      return "";
    case DriftKind::kDrift:
      return fmt::format("{}: {}, but {} of {} have {}. Align them, or waive it with a reason.", fact,
                         sharesText(drift, 1, valueText, holderName), drift.shares.front().count,
                         drift.holders, quoted(drift.shares.front().value, valueText));
    case DriftKind::kSplit:
    case DriftKind::kTooFew:
      return fmt::format(
          "{}: {}; no value has a majority of the {}, so the intended one is unknown. Set it in the profile, "
          "or align all nodes.",
          fact, sharesText(drift, 0, valueText, holderName), drift.holders);
  }
  return "";
}

}  // namespace muster::fleet
