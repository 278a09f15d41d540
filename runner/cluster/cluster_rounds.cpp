// SPDX-License-Identifier: Apache-2.0
// Follows this node's ranks through a round, and names the culprit on node 0. See cluster_rounds.h.
#include "runner/cluster/cluster_rounds.h"

#include <algorithm>
#include <utility>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr double kFailureSettle = 0.5;  // seconds in which failures that belong together arrive

}  // namespace

void ClusterRounds::begin(const std::string& name) {
  const std::lock_guard lock(node_.mutex);
  round_ = name;
  failureSeenAt_ = -1;
  before_ = node_.storeCounts();
  watch_ = {};
  node_.tasks->notify();
}

void ClusterRounds::end() {
  const std::lock_guard lock(node_.mutex);
  round_.clear();
}

void ClusterRounds::report(const std::vector<RankStatus>& statuses) {
  const std::lock_guard lock(node_.mutex);
  const bool parts = node_.options.cancelled->load() && !parting_;
  if (watch_.look(statuses, node_.time.now()) || parts) {
    parting_ = parting_ || parts;
    node_.hurry = true;
    node_.tasks->notify();
  }
}

Culprit ClusterRounds::lost() {
  const std::lock_guard lock(node_.mutex);
  Culprit culprit = published();
  return culprit.text.empty() ? Culprit{node_.lostLeader(), {}} : culprit;
}

Culprit ClusterRounds::published() const {
  const ClusterNews::News& news = news_.last();
  return !round_.empty() && news.round == round_ ? news.culprit : Culprit{};
}

std::vector<RankReport> ClusterRounds::ownReports() {
  const std::lock_guard lock(node_.mutex);
  return watch_.reports();
}

std::vector<NodeReport> ClusterRounds::nodes() {
  const std::lock_guard lock(node_.mutex);
  return node_.peers.reports(round_, node_.time.longestStop(), node_.time.now());
}

void ClusterRounds::drawOrder() {
  std::string round;
  {
    const std::lock_guard lock(node_.mutex);
    const auto& all = watch_.reports();
    const bool needed = std::any_of(all.begin(), all.end(),
                                    [](const RankReport& r) { return !r.failure.empty() && r.order == 0; });
    if (!needed || round_.empty()) return;
    round = round_;
  }
  const auto place = node_.client->add("order/" + round, 1);
  if (!place.ok()) return node_.answered(place.error());
  const std::lock_guard lock(node_.mutex);
  if (round == round_) watch_.order(*place);
}

Culprit ClusterRounds::misuse() const {
  const StoreCounts now = node_.storeCounts();
  if (now.taken != before_.taken)
    return {"two processes spoke in the name of one rank, and it is not known which of them is that rank",
            {}};
  if (now.noRoomForRanks != before_.noRoomForRanks)
    return {"the store's memory for ranks is full, and it is not known which of them filled it", {}};
  return {};
}

void ClusterRounds::noteCulprit() {
  const std::lock_guard lock(node_.mutex);
  if (round_.empty() || !published().text.empty()) return;
  Culprit culprit = misuse();
  if (culprit.text.empty())
    culprit = knownCulprit(node_.peers.reports(round_, node_.time.longestStop(), node_.time.now()));
  if (culprit.text.empty()) return;
  const double now = node_.time.now();
  if (failureSeenAt_ < 0) failureSeenAt_ = now;
  if (now < failureSeenAt_ + kFailureSettle) return;
  news_.last().round = round_;
  culprit.text = reasonText(culprit.text);
  news_.last().culprit = std::move(culprit);
}

void ClusterRounds::addFailures(NodeStatus& status) const {
  for (const RankReport& report : watch_.reports())
    if (!report.failure.empty()) status.failures.push_back(report);
  if (!status.failures.empty()) status.round = round_;
}

void ClusterRounds::forgetCulprit() {
  if (!round_.empty()) return;
  news_.last().round.clear();
  news_.last().culprit = {};
}

}  // namespace muster
