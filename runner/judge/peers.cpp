// SPDX-License-Identifier: Apache-2.0
// Finds the peers of a measurement and their values.
#include "runner/judge/peers.h"

#include <algorithm>
#include <cmath>

#include "runner/core/statistics.h"

namespace muster {
namespace {

constexpr size_t kFewest = 3;  ///< values that are compared with their median

/// What two measurements share when they are peers.
std::string peerKey(const Group& group) {
  Labels labels = group.labels;
  for (const char* own : {"device", "rank", "peer"}) labels.erase(own);
  std::string key = group.caseId;
  for (const auto& [label, value] : labels)
    key += "\n" + std::to_string(label.size()) + ":" + label + std::to_string(value.size()) + ":" + value;
  return key;
}

}  // namespace

PeerTable::PeerTable(const EvidenceIndex& index) : index_(index) {
  for (const auto& caseRank : index.caseRanks()) ++ranks_[caseRank->caseId];
}

const std::map<std::string, std::vector<double>>& PeerTable::valuesFor(const Expectation& e) {
  const auto [at, fresh] = known_.try_emplace(&e);
  if (!fresh) return at->second;
  for (const auto& group : index_.groups()) {
    if (group->metric != e.metric || group->isText() || !labelsMatch(group->labels, e.where)) continue;
    if (!group->last().problem.empty()) continue;
    const double value = comparedStatistic(e, *group, group->last());
    if (std::isfinite(value)) at->second[peerKey(*group)].push_back(value);
  }
  // Every one of them is compared with all: only their median counts.
  for (auto& [key, values] : at->second)
    if (values.size() > kFewest) values.assign(kFewest, medianOf(values));
  return at->second;
}

bool PeerTable::singleDevice(const std::string& caseId) const {
  const auto ranks = ranks_.find(caseId);
  return (ranks == ranks_.end() || ranks->second <= 1) && index_.devices().size() <= 1;
}

Peers PeerTable::of(const Expectation& e, const Group& group) {
  const auto& values = valuesFor(e);
  const auto at = values.find(peerKey(group));
  return {at == values.end() ? std::vector<double>{} : at->second, singleDevice(group.caseId)};
}

}  // namespace muster
