// SPDX-License-Identifier: Apache-2.0
// Compares devices of one node.
#include "runner/record/findings/peer_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runner/core/units.h"

namespace muster {
namespace {

constexpr size_t kLeastPeers = 2;

bool isComparable(const Verdict& verdict) {
  if (!verdict.expectation || verdict.device.empty() || !std::isfinite(verdict.observed)) return false;
  const std::string& unit = verdict.expectation->unit;
  return !verdict.expectation->comparesStability() && unit != "count" && unit != "bool" && unit != "text";
}

/// The median of all but the value at `left`, or of all of them where `left` is their count.
double medianWithout(const std::vector<double>& sorted, size_t left) {
  const size_t count = sorted.size() - (left < sorted.size() ? 1 : 0);
  const auto at = [&](size_t i) { return sorted[i < left ? i : i + 1]; };
  return count % 2 == 1 ? at(count / 2) : std::midpoint(at(count / 2 - 1), at(count / 2));
}

}  // namespace

std::string PeerDistance::text() const {
  if (!std::isfinite(share)) return "";
  const std::string group = fmt::format("its {} peers (median {})", peers, formatQuantity(median, unit));
  if (std::fabs(share) < 0.0005) return "equal to " + group;
  return fmt::format("{} {} {}", formatQuantity(std::fabs(share), "ratio", 2), share < 0 ? "below" : "above",
                     group);
}

PeerDistances::Subject PeerDistances::subjectOf(const Verdict& verdict) {
  Labels labels = verdict.labels;
  labels.erase("device");
  return {verdict.metric, verdict.caseId, std::move(labels)};
}

PeerDistances::Peers PeerDistances::peersOf(const StageRecord& stage) {
  Peers peers;
  for (const Verdict& verdict : stage.verdicts) {
    if (!isComparable(verdict)) continue;
    Values& values = peers[subjectOf(verdict)];
    if (values.byDevice.emplace(verdict.device, verdict.observed).second)
      values.sorted.push_back(verdict.observed);
  }
  for (auto& [subject, values] : peers) std::sort(values.sorted.begin(), values.sorted.end());
  return peers;
}

PeerDistance PeerDistances::of(const StageRecord& stage, const Verdict& verdict) {
  if (!isComparable(verdict)) return {};
  const auto [known, isNew] = stages_.try_emplace(&stage);
  if (isNew) known->second = peersOf(stage);
  const Values& values = known->second[subjectOf(verdict)];
  const auto own = values.byDevice.find(verdict.device);
  const size_t peers = values.sorted.size() - (own == values.byDevice.end() ? 0 : 1);
  if (peers < kLeastPeers) return {};
  const auto place = own == values.byDevice.end()
                         ? values.sorted.end()
                         : std::lower_bound(values.sorted.begin(), values.sorted.end(), own->second);
  const double median = medianWithout(values.sorted, static_cast<size_t>(place - values.sorted.begin()));
  if (median == 0) return {};
  return {median, (verdict.observed - median) / std::fabs(median), peers, verdict.expectation->unit};
}

PeerDistance peerDistance(const StageRecord& stage, const Verdict& verdict) {
  return PeerDistances().of(stage, verdict);
}

}  // namespace muster
