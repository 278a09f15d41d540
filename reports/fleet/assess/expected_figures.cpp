// SPDX-License-Identifier: Apache-2.0
// See expected_figures.h.
#include "reports/fleet/assess/expected_figures.h"

#include <cmath>
#include <optional>

namespace muster::fleet {
namespace {

/// A figure and how far a device may stay behind it, as a share.
struct Wanted {
  double figure = 0;
  double tolerance = 0;

  /// The figure that is just good enough.
  [[nodiscard]] double edge(Direction direction) const {
    return direction == Direction::kLower ? figure * (1 + tolerance) : figure * (1 - tolerance);
  }
};

std::optional<Wanted> wantedBy(const Expectation& e, const FigureKey& key, const ProfileFigures& profile) {
  // What only warns does not say what a healthy device must reach.
  if (e.severity != Severity::kFail || e.metric != key.metric || !labelsMatch(key.labels, e.where))
    return std::nullopt;
  const bool higher = key.direction == Direction::kHigher;
  switch (e.kind) {
    case CheckKind::kMin:
      return higher ? std::optional(Wanted{e.limit, 0}) : std::nullopt;
    case CheckKind::kMax:
      return higher ? std::nullopt : std::optional(Wanted{e.limit, 0});
    case CheckKind::kBaseline:
      return Wanted{e.limit, e.tolerance};
    case CheckKind::kOfPeak: {
      const auto peak = profile.peaks.find(key.peak);
      return peak == profile.peaks.end() ? std::nullopt : std::optional(Wanted{e.limit * peak->second, 0});
    }
    default:
      return std::nullopt;  // peers, spread and texts are no figure
  }
}

/// The profile that most nodes of the table were judged by; nodes of one SKU may have had different editions.
const ProfileFigures* profileOf(const PeerTable& table, const FleetRecords& records,
                                const FleetOptions& options, const Fleet& fleet) {
  std::map<std::string, size_t> votes;
  for (const size_t node : table.nodes)
    ++votes[records.nodes[fleet.nodes[node].records.front()].profileSha256];
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end()) return nullptr;
  const auto found = options.profiles.find(most->first);
  return found == options.profiles.end() ? nullptr : &found->second;
}

}  // namespace

void addExpected(PeerTable& table, const FleetRecords& records, const FleetOptions& options,
                 const Fleet& fleet) {
  const ProfileFigures* profile = profileOf(table, records, options, fleet);
  if (profile == nullptr) return;
  for (size_t c = 0; c < table.keys.size(); ++c) {
    const FigureKey& key = records.names->figures[table.keys[c]];
    if (key.direction == Direction::kNone) continue;
    PeerMetric& metric = table.group.metrics[c];
    for (const Expectation& e : profile->expectations) {
      const std::optional<Wanted> wanted = wantedBy(e, key, *profile);
      if (!wanted || !(wanted->figure > 0)) continue;
      const Wanted now{metric.expected, metric.tolerance};
      const double stricter = wanted->edge(key.direction) - now.edge(key.direction);
      if (!std::isnan(now.figure) && (key.direction == Direction::kHigher ? stricter <= 0 : stricter >= 0))
        continue;
      metric.expected = wanted->figure;
      metric.tolerance = wanted->tolerance;
    }
  }
}

}  // namespace muster::fleet
