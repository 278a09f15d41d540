// SPDX-License-Identifier: Apache-2.0
// A node's contact with node 0. See cluster_node.h.
#include "runner/cluster/cluster_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace muster {
namespace {

constexpr double kLeastStop = 1;  // seconds without a look at the clock that count as a stop of this process

}  // namespace

int rankOfKey(std::string_view key, int count) {
  int rank = -1;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), rank);
  return failure == std::errc() && end == key.data() + key.size() && rank > 0 && rank < count ? rank : -1;
}

ClusterNode::ClusterNode(ClusterOptions given, std::string start)
    : options(std::move(given)),
      nonce(std::move(start)),
      tasks(options.world->tasks()),
      time(*options.clock, std::max(kLeastStop, 2 * options.beat)),
      answeredAt(time.now()),
      peers(options) {}

void ClusterNode::answered(const Status& status) {
  const std::lock_guard lock(mutex);
  // A wait that was in vain was answered, too.
  if (status.ok() || status.error().code == ErrorCode::kTimeout) {
    answeredAt = time.now();
    return;
  }
  trouble = status.error().text();
  if (status.error().code == ErrorCode::kProtocol && !joined && refused.empty())
    refused = "cannot join the run: " + trouble;
  if (!refused.empty()) tasks->notify();
}

void ClusterNode::pause(double seconds) {
  const double end = options.clock->now() + seconds;
  std::unique_lock lock(mutex);
  for (double left = seconds; left > 0 && !stopping && !hurry; left = end - options.clock->now())
    tasks->wait(lock, left);
}

std::string ClusterNode::leader() {
  const std::lock_guard lock(mutex);
  return peers.status(0) == nullptr ? "" : peers.status(0)->nonce;
}

std::string ClusterNode::lostLeader() {
  if (leads()) return "";
  const std::string me = peers.name(options.nodeRank), leader = peers.name(0);
  if (peers.startedAgain(0))
    return fmt::format("{} lost {}, which was started again in the middle of this stage", me, leader);
  const double silence = time.now() - answeredAt;
  if (silence <= options.lostAfter) return "";
  const std::string why = fmt::format("no answer for {:.0f} s ({})", silence,
                                      trouble.empty() ? "no error was reported" : trouble);
  if (const auto stop = time.longestStop(); stop.seconds > 0 && peers.givenUpFor(stop, answeredAt))
    return stoppedNode(me, stop.seconds);
  if (options.nodeCount == 2) return lostEachOther(why);
  return fmt::format("{} lost {}, which serves the store: {}", me, leader, why);
}

}  // namespace muster
