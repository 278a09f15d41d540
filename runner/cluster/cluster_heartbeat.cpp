// SPDX-License-Identifier: Apache-2.0
// Sends and reads heartbeats and statuses. See cluster_heartbeat.h.
#include "runner/cluster/cluster_heartbeat.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr const char* kStatuses = "status/";  // and a node's rank, but for node 0: its NodeStatus
constexpr const char* kBeats = "beat/";       // and its rank: a number that grows with each heartbeat

std::string statusKey(int rank) {
  return fmt::format("{}{}", kStatuses, rank);
}

std::string beatKey(int rank) {
  return fmt::format("{}{}", kBeats, rank);
}

std::optional<NodeStatus> readableStatus(const std::string& text) {
  auto status = statusFromText(text);
  return status.ok() ? std::optional(std::move(*status)) : std::nullopt;
}

}  // namespace

void ClusterHeartbeat::endRun() {
  const std::lock_guard lock(node_.mutex);
  ended_ = node_.hurry = true;
  node_.tasks->notify();
}

/// Node 0's store holds the answer to each heartbeat back until it has news or the next heartbeat is due, so
/// a node needs one request for both.
void ClusterHeartbeat::beat() {
  const ClusterOptions& options = node_.options;
  uint64_t since = 0;
  int connections = 0;
  while (true) {
    {
      std::unique_lock lock(node_.mutex);
      while (!node_.stopping && !node_.joined)
        node_.tasks->wait(lock, std::numeric_limits<double>::infinity());
      if (node_.stopping) return;
    }
    // Another connection may lead to another store, whose versions are others.
    if (const int now = node_.client->connections(); now != connections) {
      connections = now;
      since = 0;
    }
    const auto changes =
        node_.client->touch(beatKey(options.nodeRank), ClusterNews::key(), since, options.beat);
    node_.answered(changes.ok() ? Status() : Status(changes.error()));
    if (!changes.ok()) {
      node_.pause(options.beat / 2);
      continue;
    }
    since = changes->version;
    if (!changes->entries.empty()) news_.take(changes->entries[0].second);
  }
}

/// The last heartbeat under this rank; empty: there was none.
Result<std::string> ClusterHeartbeat::lastBeat() {
  auto beat = node_.client->get(beatKey(node_.options.nodeRank), 0);
  if (!beat.ok() && beat.error().code == ErrorCode::kTimeout) return std::string();
  return beat;
}

Result<std::optional<std::string>> ClusterHeartbeat::otherHost() {
  MUSTER_TRY(const std::string before, lastBeat());
  node_.pause(3 * node_.options.beat);
  MUSTER_TRY(const std::string later, lastBeat());
  if (later == before) return std::optional<std::string>();
  const auto text = node_.client->get(statusKey(node_.options.nodeRank), 0);
  const auto status = text.ok() ? readableStatus(*text) : std::nullopt;
  return std::optional(status ? printable(status->host) : "?");
}

Status ClusterHeartbeat::meetLeader() {
  MUSTER_TRY(const std::string told, node_.client->get(ClusterNews::key(), 1));
  MUSTER_CHECK_OK(sendStatus());  // so that node 0 can name what differs, too
  news_.take(told);
  const std::string text = leaderNews();
  takeLeader(text, readableStatus(text));
  return {};
}

/// A new start of node 0 gets this node's status before this node speaks of that start.
void ClusterHeartbeat::followLeader() {
  const std::string text = leaderNews();
  if (text == leaderText_) return;
  auto status = readableStatus(text);
  if (status && status->nonce != node_.leader()) {
    given_.clear();
    if (!sendStatus().ok()) return;
  }
  takeLeader(text, std::move(status));
}

std::string ClusterHeartbeat::leaderNews() {
  const std::lock_guard lock(node_.mutex);
  return news_.last().status;
}

void ClusterHeartbeat::takeLeader(const std::string& text, std::optional<NodeStatus> status) {
  leaderText_ = text;
  const std::lock_guard lock(node_.mutex);
  node_.peers.takeStatus(0, std::move(status), node_.time.now());
  node_.tasks->notify();
}

std::string ClusterHeartbeat::ownStatus() {
  NodeStatus status;
  status.nonce = node_.nonce;
  status.host = node_.options.host;
  status.identity = {node_.options.identity.begin(), node_.options.identity.end()};
  status.interrupted = node_.options.cancelled->load();
  const std::lock_guard lock(node_.mutex);
  status.finished = node_.peers.ownFinished();
  status.declined = node_.peers.ownDeclined();
  rounds_.addFailures(status);
  status.ended = ended_;
  return statusText(status);
}

/// Node 0's goes to the others with its news.
Status ClusterHeartbeat::sendStatus() {
  const std::string text = ownStatus();
  if (node_.leads()) {
    auto status = text == given_ ? std::nullopt : readableStatus(text);
    const std::lock_guard lock(node_.mutex);
    if (status) node_.peers.takeStatus(0, std::move(status), node_.time.now());
    node_.peers.takeHeartbeat(0, node_.time.now());
    news_.last().status = given_ = text;
    return {};
  }
  if (text == given_) return {};
  given_.clear();
  const Status given = node_.client->set(statusKey(node_.options.nodeRank), text);
  node_.answered(given);
  if (given.ok()) given_ = text;
  return given;
}

/// Statuses are read outside of the lock, and after heartbeats: a node sends its status before its first
/// heartbeat.
void ClusterHeartbeat::readStatuses() {
  uint64_t beatsSeen = 0, statusesSeen = 0;
  {
    std::unique_lock lock(node_.mutex);
    while (reading_) node_.tasks->wait(lock, node_.options.beat);
    reading_ = true;
    beatsSeen = beatsSeen_;
    statusesSeen = statusesSeen_;
  }
  std::vector<int> beats;
  std::vector<std::pair<int, std::optional<NodeStatus>>> statuses;
  const auto read = [&](const char* start, uint64_t& since, const auto& take) {
    for (bool more = true; more;) {
      const auto changes = node_.client->changes(start, since);
      if (!changes.ok()) return;
      for (const auto& [key, value] : changes->entries)
        if (const int rank = rankOfKey(key, node_.options.nodeCount); rank >= 0) take(rank, value);
      since = changes->version;
      more = changes->more;
    }
  };
  read(kBeats, beatsSeen, [&](int rank, const std::string& /*count*/) { beats.push_back(rank); });
  read(kStatuses, statusesSeen,
       [&](int rank, const std::string& text) { statuses.emplace_back(rank, readableStatus(text)); });
  const std::lock_guard lock(node_.mutex);
  const double now = node_.time.now();
  for (auto& [rank, status] : statuses) node_.peers.takeStatus(rank, std::move(status), now);
  for (const int rank : beats) node_.peers.takeHeartbeat(rank, now);
  beatsSeen_ = beatsSeen;
  statusesSeen_ = statusesSeen;
  reading_ = false;
  node_.tasks->notify();
}

}  // namespace muster
