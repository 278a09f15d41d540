// SPDX-License-Identifier: Apache-2.0
// Heartbeats: they tell node 0 the state of every node, and all nodes which one was lost. See cluster_link.h.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "runner/app/cluster_link.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr double kFailureSettle = 0.5;  // seconds in which failures that belong together arrive

constexpr const char* kSigns = "sign/";      // and a node's rank: its sign
constexpr std::string_view kBeat = "/beat";  // behind that: its heartbeats, a number that grows

/// The rank in "12" or "12/beat"; -1: it is neither. `beat`: which of both.
int rankOfKey(std::string_view key, int count, bool& beat) {
  beat = key.ends_with(kBeat);
  if (beat) key.remove_suffix(kBeat.size());
  int rank = -1;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), rank);
  return failure == std::errc() && end == key.data() + key.size() && rank >= 0 && rank < count ? rank : -1;
}

std::optional<NodeSign> readableSign(const std::string& text) {
  auto sign = signFromText(text);
  return sign.ok() ? std::optional(std::move(*sign)) : std::nullopt;
}

}  // namespace

std::string ClusterLink::signKey(int rank) {
  return fmt::format("{}{}", kSigns, rank);
}

std::string ClusterLink::beatKey(int rank) {
  return fmt::format("{}{}{}", kSigns, rank, kBeat);
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
      claimed = status.ok();
    }
    if (claimed) {
      drawOrder();
      status = giveSign();
    }
    answered(status);
    if (claimed && status.ok()) noteJoined();
    if (leads() && claimed) {
      publishFinished();
      publishCulprit();
    } else if (claimed) {
      readLeader();
    }
    pause(options_.beat);
  }
}

/// Only now: the sign that is given while the rank is claimed comes before it is known whether this node may
/// join.
void ClusterLink::noteJoined() {
  const std::lock_guard lock(mutex_);
  joined_ = joined_ || refused_.empty();
  tasks_->notify();
}

/// Makes sure that no other host gives signs under this rank, and that node 0 runs the same.
Status ClusterLink::claimRank() {
  const auto mine = client_->get(beatKey(options_.nodeRank), 0);
  if (!mine.ok() && mine.error().code != ErrorCode::kTimeout) return mine.error();
  if (mine.ok()) {
    // Somebody was here: an earlier start of this node, or a second host under the same rank.
    pause(3 * options_.beat);
    const auto later = client_->get(beatKey(options_.nodeRank), 0);
    if (!later.ok()) return later.error();
    if (*later != *mine) {
      const auto text = client_->get(signKey(options_.nodeRank), 0);
      const auto sign = text.ok() ? readableSign(*text) : std::nullopt;
      const std::lock_guard lock(mutex_);
      refused_ = fmt::format(
          "node rank {} is already taken by host {}, and this is {}; give each node a rank of its own",
          options_.nodeRank, sign ? printable(sign->host) : "?", options_.host);
      tasks_->notify();
      return {};
    }
  }
  if (leads()) return {};
  const auto leader = client_->get(signKey(0), 1);
  if (!leader.ok()) return leader.error();
  MUSTER_CHECK_OK(giveSign());  // so that node 0 can name what differs, too
  auto sign = readableSign(*leader);
  const std::lock_guard lock(mutex_);
  leaderText_ = *leader;
  peers_.takeSign(0, std::move(sign), time_.now());
  refused_ = peers_.identityProblem(0, true);
  tasks_->notify();
  return {};
}

std::string ClusterLink::ownSign() {
  NodeSign sign;
  sign.nonce = nonce_;
  sign.host = options_.host;
  sign.identity = {options_.identity.begin(), options_.identity.end()};
  sign.interrupted = options_.cancelled->load();
  const std::lock_guard lock(mutex_);
  sign.finished = options_.finished;
  sign.round = round_;
  for (const RankReport& report : watch_.reports())
    if (!report.failure.empty()) sign.failures.push_back(report);
  sign.ended = ended_;
  return signText(sign);
}

/// The sign goes before the heartbeat, and only where it has changed.
Status ClusterLink::giveSign() {
  const std::string text = ownSign();
  if (text != given_) {
    given_.clear();
    MUSTER_CHECK_OK(client_->set(signKey(options_.nodeRank), text));
    given_ = text;
  }
  return client_->set(beatKey(options_.nodeRank), std::to_string(++beats_));
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

/// Node 0: all that has changed, with one request. Signs are read before anybody has to wait for it.
void ClusterLink::readSigns() {
  uint64_t since = 0;
  {
    std::unique_lock lock(mutex_);
    while (reading_) tasks_->wait(lock, options_.beat);
    reading_ = true;
    since = signsSeen_;
  }
  for (bool more = true; more;) {
    const auto changes = client_->changes(kSigns, since);
    if (!changes.ok()) break;
    std::vector<int> beats;
    std::vector<std::pair<int, std::optional<NodeSign>>> signs;
    for (const auto& [key, value] : changes->entries) {
      bool beat = false;
      const int rank = rankOfKey(key, options_.nodeCount, beat);
      if (rank >= 0 && beat) beats.push_back(rank);
      if (rank >= 0 && !beat) signs.emplace_back(rank, readableSign(value));
    }
    since = changes->version;
    more = changes->more;
    const std::lock_guard lock(mutex_);
    signsSeen_ = since;
    const double now = time_.now();
    signsNew_ = signsNew_ || !signs.empty();
    for (auto& [rank, sign] : signs) peers_.takeSign(rank, std::move(sign), now);
    for (const int rank : beats) peers_.takeHeartbeat(rank, now);
  }
  const std::lock_guard lock(mutex_);
  reading_ = false;
  tasks_->notify();
}

/// To see whether node 0 was started again: its new store gets this node's sign before this node speaks of
/// the new start.
void ClusterLink::readLeader() {
  const auto text = client_->get(signKey(0), 0);
  if (!text.ok() || *text == leaderText_) return;
  auto sign = readableSign(*text);
  if (sign && sign->nonce != leader()) {
    given_.clear();
    if (!giveSign().ok()) return;
  }
  leaderText_ = *text;
  const std::lock_guard lock(mutex_);
  peers_.takeSign(0, std::move(sign), time_.now());
}

/// Node 0 reads all signs, and tells the others in a few words what they say about finished stages.
void ClusterLink::publishFinished() {
  readSigns();
  Finished now;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(signsNew_, false)) return;
    now.seen = peers_.seenCount();
    now.stages = peers_.disagreements();
    now.text = dumpJson({{"seen", now.seen}, {"stages", now.stages}});
    if (now.text == finished_.text) return;
  }
  const Status told = client_->set("finished", now.text);
  answered(told);
  const std::lock_guard lock(mutex_);
  if (!told.ok()) return (void)(signsNew_ = true);
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

/// While a round runs, node 0 tells all nodes as soon as it knows who is lost: nobody waits for the dead.
void ClusterLink::publishCulprit() {
  std::string culprit, round;
  {
    const std::lock_guard lock(mutex_);
    if (round_.empty() || !stop_.empty()) return;
    culprit = knownCulprit(peers_.reports(round_, time_.longestStop(), time_.now()));
    if (culprit.empty()) return;
    const double now = time_.now();
    if (failureSeenAt_ < 0) failureSeenAt_ = now;
    if (now < failureSeenAt_ + kFailureSettle) {
      return;
    }
    round = round_;
  }
  if (const Status told = client_->set("stop/" + round, culprit); !told.ok()) return answered(told);
  const std::lock_guard lock(mutex_);
  if (round_ == round) stop_ = culprit;
}

/// Waits for what node 0 publishes about the open round.
void ClusterLink::watch() {
  while (true) {
    std::string round;
    {
      std::unique_lock lock(mutex_);
      while (!stopping_ && (round_.empty() || !stop_.empty()))
        tasks_->wait(lock, std::numeric_limits<double>::infinity());
      if (stopping_) return;
      round = round_;
    }
    const auto stop = client_->get("stop/" + round, options_.beat);
    answered(stop.ok() ? Status() : Status(stop.error()));
    {
      const std::lock_guard lock(mutex_);
      if (stop.ok() && round_ == round && stop_.empty()) stop_ = *stop;
    }
    if (!stop.ok() && stop.error().code != ErrorCode::kTimeout) pause(options_.beat / 2);
  }
}

}  // namespace muster
