// SPDX-License-Identifier: Apache-2.0
// Heartbeats: they tell node 0 the state of every node, and all nodes which one was lost. See cluster_link.h.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "runner/cluster/cluster_link.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr double kFailureSettle = 0.5;  // seconds in which failures that belong together arrive

constexpr const char* kStatuses = "status/";  // and a node's rank: its NodeStatus
constexpr const char* kBeats = "beat/";       // and its rank: a number that grows with each heartbeat
constexpr const char* kNews = "news";         // what node 0 tells all others

/// The rank in "12"; -1: it is none.
int rankOfKey(std::string_view key, int count) {
  int rank = -1;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), rank);
  return failure == std::errc() && end == key.data() + key.size() && rank >= 0 && rank < count ? rank : -1;
}

std::optional<NodeStatus> readableStatus(const std::string& text) {
  auto status = statusFromText(text);
  return status.ok() ? std::optional(std::move(*status)) : std::nullopt;
}

}  // namespace

std::string ClusterLink::statusKey(int rank) {
  return fmt::format("{}{}", kStatuses, rank);
}

std::string ClusterLink::beatKey(int rank) {
  return fmt::format("{}{}", kBeats, rank);
}

void ClusterLink::pulse() {
  bool claimed = false;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || !refused_.empty()) return;
      hurry_ = false;
    }
    Status status;
    if (!claimed) {
      status = claimRank();
      answered(status);
      claimed = status.ok();
    }
    if (claimed) {
      drawOrder();
      status = sendStatus();
    }
    if (claimed && status.ok()) noteJoined();
    if (leads() && claimed) {
      publishFinished();
      publishCulprit();
      publishNews();
    } else if (claimed) {
      takeLeader();
    }
    pause(options_.beat);
  }
}

/// Heartbeats of a node other than node 0. Node 0's store holds the answer to each back until it has news or
/// the next heartbeat is due, so a node needs one request for both.
void ClusterLink::beat() {
  uint64_t since = 0;
  int connections = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      while (!stopping_ && !claimed_) tasks_->wait(lock, std::numeric_limits<double>::infinity());
      if (stopping_) return;
    }
    // Another connection may lead to another store, whose versions are others.
    if (const int now = client_->connections(); now != connections) {
      connections = now;
      since = 0;
    }
    const auto changes = client_->touch(beatKey(options_.nodeRank), kNews, since, options_.beat);
    answered(changes.ok() ? Status() : Status(changes.error()));
    if (!changes.ok()) {
      pause(options_.beat / 2);
      continue;
    }
    since = changes->version;
    if (!changes->entries.empty()) takeNews(changes->entries[0].second);
  }
}

/// Only now: the status sent while the rank is claimed comes before it is known whether this node may join.
void ClusterLink::noteJoined() {
  const std::lock_guard lock(mutex_);
  claimed_ = joined_ = joined_ || refused_.empty();
  tasks_->notify();
}

/// The last heartbeat under this rank; empty: there was none.
Result<std::string> ClusterLink::lastBeat() {
  auto beat = client_->get(beatKey(options_.nodeRank), 0);
  if (!beat.ok() && beat.error().code == ErrorCode::kTimeout) return std::string();
  return beat;
}

/// Makes sure that no other host reports under this rank, and that node 0 runs the same.
Status ClusterLink::claimRank() {
  if (claims_ == 0) {
    MUSTER_TRY(claims_, client_->add(fmt::format("claim/{}", options_.nodeRank), 1));
  }
  if (claims_ > 1) {
    // Somebody was here: an earlier start of this node, or a second host under the same rank. Only the latter
    // sends heartbeats; it may not have sent its first one yet.
    MUSTER_TRY(const std::string before, lastBeat());
    pause(3 * options_.beat);
    MUSTER_TRY(const std::string later, lastBeat());
    if (later != before) {
      const auto text = client_->get(statusKey(options_.nodeRank), 0);
      const auto status = text.ok() ? readableStatus(*text) : std::nullopt;
      const std::lock_guard lock(mutex_);
      refused_ =
          fmt::format("node rank {} is already taken by host {}, and this is {}; give each node its own rank",
                      options_.nodeRank, status ? printable(status->host) : "?", options_.host);
      tasks_->notify();
      return {};
    }
  }
  if (leads()) return {};
  const auto told = client_->get(kNews, 1);
  if (!told.ok()) return told.error();
  MUSTER_CHECK_OK(sendStatus());  // so that node 0 can name what differs, too
  takeNews(*told);
  const std::lock_guard lock(mutex_);
  auto status = readableStatus(news_.status);
  leaderText_ = news_.status;
  peers_.takeStatus(0, std::move(status), time_.now());
  refused_ = peers_.identityProblem(0, true);
  tasks_->notify();
  return {};
}

std::string ClusterLink::ownStatus() {
  NodeStatus status;
  status.nonce = nonce_;
  status.host = options_.host;
  status.identity = {options_.identity.begin(), options_.identity.end()};
  status.interrupted = options_.cancelled->load();
  const std::lock_guard lock(mutex_);
  status.finished = options_.finished;
  for (const RankReport& report : watch_.reports())
    if (!report.failure.empty()) status.failures.push_back(report);
  if (!status.failures.empty()) status.round = round_;
  status.ended = ended_;
  return statusText(status);
}

/// Only where it has changed. Node 0 has nobody who answers its heartbeats with news, so it sends them here.
Status ClusterLink::sendStatus() {
  const std::string text = ownStatus();
  if (text != given_) {
    given_.clear();
    const Status given = client_->set(statusKey(options_.nodeRank), text);
    answered(given);
    MUSTER_CHECK_OK(given);
    given_ = text;
  }
  if (!leads()) return {};
  {
    const std::lock_guard lock(mutex_);
    news_.status = text;
  }
  const Status beat = client_->set(beatKey(0), std::to_string(++beats_));
  answered(beat);
  return beat;
}

/// The store's counter puts the failures of all nodes into one order, whatever their clocks say.
void ClusterLink::drawOrder() {
  std::string round;
  {
    const std::lock_guard lock(mutex_);
    const auto& all = watch_.reports();
    const bool needed = std::any_of(all.begin(), all.end(),
                                    [](const RankReport& r) { return !r.failure.empty() && r.order == 0; });
    if (!needed || round_.empty()) return;
    round = round_;
  }
  const auto place = client_->add("order/" + round, 1);
  if (!place.ok()) return answered(place.error());
  const std::lock_guard lock(mutex_);
  if (round == round_) watch_.order(*place);
}

/// Node 0: reads all that has changed. Statuses are read outside of the lock, and after heartbeats: a node
/// sends its status before its first heartbeat.
void ClusterLink::readStatuses() {
  uint64_t beatsSeen = 0, statusesSeen = 0;
  {
    std::unique_lock lock(mutex_);
    while (reading_) tasks_->wait(lock, options_.beat);
    reading_ = true;
    beatsSeen = beatsSeen_;
    statusesSeen = statusesSeen_;
  }
  std::vector<int> beats;
  std::vector<std::pair<int, std::optional<NodeStatus>>> statuses;
  const auto read = [&](const char* start, uint64_t& since, const auto& take) {
    for (bool more = true; more;) {
      const auto changes = client_->changes(start, since);
      if (!changes.ok()) return;
      for (const auto& [key, value] : changes->entries)
        if (const int rank = rankOfKey(key, options_.nodeCount); rank >= 0) take(rank, value);
      since = changes->version;
      more = changes->more;
    }
  };
  read(kBeats, beatsSeen, [&](int rank, const std::string& /*count*/) { beats.push_back(rank); });
  read(kStatuses, statusesSeen,
       [&](int rank, const std::string& text) { statuses.emplace_back(rank, readableStatus(text)); });
  const std::lock_guard lock(mutex_);
  const double now = time_.now();
  statusesNew_ = statusesNew_ || !statuses.empty();
  for (auto& [rank, status] : statuses) peers_.takeStatus(rank, std::move(status), now);
  for (const int rank : beats) peers_.takeHeartbeat(rank, now);
  beatsSeen_ = beatsSeen;
  statusesSeen_ = statusesSeen;
  reading_ = false;
  tasks_->notify();
}

void ClusterLink::publishNews() {
  std::string text;
  {
    std::unique_lock lock(mutex_);
    while (telling_) tasks_->wait(lock, options_.beat);
    text = dumpJson({{"status", news_.status},
                     {"round", news_.round},
                     {"culprit", news_.culprit},
                     {"open", news_.open},
                     {"decided", news_.decided},
                     {"decision", news_.decision}});
    if (text == newsTold_ || news_.status.empty()) return;  // before its first status node 0 has no news
    telling_ = true;
  }
  const Status told = client_->set(kNews, text);
  answered(told);
  const std::lock_guard lock(mutex_);
  newsTold_ = told.ok() ? text : "";
  telling_ = false;
  tasks_->notify();
}

void ClusterLink::takeNews(const std::string& text) {
  const auto json = parseJson(text);
  if (!json.ok()) return;
  News news;
  JsonReader reader(*json, "news");
  reader.read("status", news.status);
  reader.read("round", news.round);
  reader.read("culprit", news.culprit);
  reader.read("open", news.open);
  reader.read("decided", news.decided);
  reader.read("decision", news.decision);
  if (!reader.ok()) return;
  const std::lock_guard lock(mutex_);
  if (news.status != news_.status) hurry_ = true;
  news_ = std::move(news);
  tasks_->notify();
}

/// Sees whether node 0 was started again: its new store gets this node's status before this node speaks of
/// the new start.
void ClusterLink::takeLeader() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text = news_.status;
  }
  if (text == leaderText_) return;
  auto status = readableStatus(text);
  if (status && status->nonce != leader()) {
    given_.clear();
    if (!sendStatus().ok()) return;
  }
  leaderText_ = text;
  const std::lock_guard lock(mutex_);
  peers_.takeStatus(0, std::move(status), time_.now());
  tasks_->notify();
}

/// Node 0 reads all statuses and publishes a summary of the finished stages.
void ClusterLink::publishFinished() {
  readStatuses();
  Finished now;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(statusesNew_, false)) return;
    now.seen = peers_.seenCount();
    now.stages = peers_.disagreements();
    now.text = dumpJson({{"seen", now.seen}, {"stages", now.stages}});
    if (now.text == finished_.text) return;
  }
  const Status told = client_->set("finished", now.text);
  answered(told);
  const std::lock_guard lock(mutex_);
  if (!told.ok()) return (void)(statusesNew_ = true);
  finished_ = std::move(now);
}

void ClusterLink::readFinished() {
  const auto text = client_->get("finished", 0);
  if (!text.ok()) return;
  const auto json = parseJson(*text);
  if (!json.ok()) return;
  Finished now;
  JsonReader reader(*json, "finished");
  reader.read("seen", now.seen);
  reader.read("stages", now.stages);
  if (!reader.ok()) return;
  const std::lock_guard lock(mutex_);
  finished_ = std::move(now);
}

/// While a round runs, node 0 tells all nodes as soon as it knows who is lost: nobody waits for it.
void ClusterLink::publishCulprit() {
  const std::lock_guard lock(mutex_);
  if (round_.empty() || !published().empty()) return;
  std::string culprit = knownCulprit(peers_.reports(round_, time_.longestStop(), time_.now()));
  if (culprit.empty()) return;
  const double now = time_.now();
  if (failureSeenAt_ < 0) failureSeenAt_ = now;
  if (now < failureSeenAt_ + kFailureSettle) return;
  news_.round = round_;
  news_.culprit = std::move(culprit);
}

}  // namespace muster
