// SPDX-License-Identifier: Apache-2.0
// Compares devices of one node.
#include "runner/record/findings/peer_distance.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "runner/core/statistics.h"
#include "runner/core/units.h"

namespace muster {
namespace {

constexpr size_t kLeastPeers = 2;

bool isComparable(const Verdict& verdict) {
  if (!verdict.expectation || verdict.device.empty() || !std::isfinite(verdict.observed)) return false;
  const std::string& unit = verdict.expectation->unit;
  return !verdict.expectation->comparesStability() && unit != "count" && unit != "bool" && unit != "text";
}

Labels withoutDevice(Labels labels) {
  labels.erase("device");
  return labels;
}

}  // namespace

std::string PeerDistance::text() const {
  if (!std::isfinite(share)) return "";
  const std::string group = fmt::format("its {} peers (median {})", peers, formatQuantity(median, unit));
  if (std::fabs(share) < 0.0005) return "equal to " + group;
  return fmt::format("{} {} {}", formatQuantity(std::fabs(share), "ratio", 2), share < 0 ? "below" : "above",
                     group);
}

PeerDistance peerDistance(const StageRecord& stage, const Verdict& verdict) {
  PeerDistance distance;
  if (!isComparable(verdict)) return distance;
  const Labels labels = withoutDevice(verdict.labels);
  std::map<std::string, double> values;  // several expectations of one device compare one value
  for (const Verdict& other : stage.verdicts)
    if (other.metric == verdict.metric && other.caseId == verdict.caseId && other.device != verdict.device &&
        isComparable(other) && withoutDevice(other.labels) == labels)
      values.emplace(other.device, other.observed);
  std::vector<double> peers;
  peers.reserve(values.size());
  for (const auto& [device, value] : values) peers.push_back(value);
  const double median = medianOf(peers);
  if (peers.size() < kLeastPeers || !std::isfinite(median) || median == 0) return distance;
  return {median, (verdict.observed - median) / std::fabs(median), peers.size(), verdict.expectation->unit};
}

}  // namespace muster
