// SPDX-License-Identifier: Apache-2.0
// See cluster_link.h: heartbeats, which tell node 0 how every node fares, and all nodes who is gone.
#include <fmt/format.h>

#include <algorithm>

#include "runner/app/cluster_link.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr double kFailureSettle = 0.5;  // seconds in which failures that belong together arrive

Json identityJson(const NodeIdentity& identity) {
  Json list = Json::object();
  for (const auto& [what, value] : identity) list[what] = value;
  return list;
}

}  // namespace

std::string ClusterLink::signKey(int rank) {
  return fmt::format("sign/{}", rank);
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
      readSigns();
      publishCulprit();
    } else if (claimed) {
      readSign(0);  // to see whether it was started again
    }
    pause(options_.beat);
  }
}

/// Only now: the sign that is given while the rank is claimed comes before it is known whether this node may
/// join.
void ClusterLink::noteJoined() {
  const std::lock_guard lock(mutex_);
  joined_ = joined_ || refused_.empty();
  changed_.notify_all();
}

/// Makes sure that no other host gives signs under this rank, and that node 0 runs the same.
Status ClusterLink::claimRank() {
  const auto mine = client_->get(signKey(options_.nodeRank), 0);
  if (!mine.ok() && mine.error().code != ErrorCode::kTimeout) return mine.error();
  if (mine.ok()) {
    // Somebody was here: an earlier start of this node, or a second host under the same rank.
    pause(3 * options_.beat);
    const auto later = client_->get(signKey(options_.nodeRank), 0);
    if (!later.ok()) return later.error();
    if (*later != *mine) {
      const auto sign = parseJson(*later);
      const std::string host = sign.ok() && sign->is_object() ? sign->value("host", "?") : "?";
      const std::lock_guard lock(mutex_);
      refused_ = fmt::format(
          "node rank {} is already taken by host {}, and this is {}; give each node a rank of its own",
          options_.nodeRank, printable(host), options_.host);
      changed_.notify_all();
      return {};
    }
  }
  if (leads()) return {};
  const auto leader = client_->get(signKey(0), 1);
  if (!leader.ok()) return leader.error();
  MUSTER_TRY(const Json sign, parseJson(*leader));
  MUSTER_CHECK_OK(giveSign());  // so that node 0 can name what differs, too
  const std::lock_guard lock(mutex_);
  peers_[0].sign = sign;
  refused_ = identityProblem(sign, nameLocked(0), true);
  return {};
}

std::string ClusterLink::identityProblem(const Json& theirs, const std::string& name, bool theyLead) const {
  if (!theirs.is_object() || !theirs.contains("identity") || !theirs["identity"].is_object())
    return name + " sends heartbeats without an identity; is it another version of Muster?";
  for (const auto& [what, value] : options_.identity) {
    const std::string other = theirs["identity"].contains(what) && theirs["identity"][what].is_string()
                                  ? theirs["identity"][what].get<std::string>()
                                  : std::string("(none)");
    if (other == value) continue;
    const std::string me = nameLocked(options_.nodeRank);
    return fmt::format("{} has {} {}, and {} has {}; all nodes of a run must have the same",
                       theyLead ? me : name, what, printable(theyLead ? value : other, 100),
                       theyLead ? name : me, printable(theyLead ? other : value, 100));
  }
  return "";
}

Status ClusterLink::giveSign() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    Json ranks = Json::array();
    for (const RankReport& report : watch_.reports()) ranks.push_back(toJson(report));
    Json sign = {{"nonce", nonce_},       {"n", ++beats_},
                 {"host", options_.host}, {"identity", identityJson(options_.identity)},
                 {"round", round_},       {"ranks", std::move(ranks)}};
    if (!options_.finished.empty()) sign["finished"] = options_.finished;
    if (options_.cancelled->load()) sign["interrupted"] = true;
    if (ended_) sign["ended"] = true;
    text = dumpJson(sign);
  }
  return client_->set(signKey(options_.nodeRank), text);
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

void ClusterLink::readSigns() {
  for (int rank = 0; rank < options_.nodeCount; ++rank) readSign(rank);
}

/// False when the store could not be reached.
bool ClusterLink::readSign(int rank) {
  const auto text = client_->get(signKey(rank), 0);
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!text.ok()) return text.error().code == ErrorCode::kTimeout;
  if (*text == peer.text) return true;
  peer.text = *text;
  auto sign = parseJson(*text);
  peer.sign = sign.ok() ? std::move(*sign) : Json();
  peer.seenAt = time_.now();
  return true;
}

/// Node 0: how many of the others are alive and have not ended their runs.
int64_t ClusterLink::stillAtWork() {
  const std::lock_guard lock(mutex_);
  const double now = time_.now();
  return std::count_if(peers_.begin() + 1, peers_.end(), [&](const Peer& peer) {
    return !silent(peer, now) && !(peer.sign.is_object() && peer.sign.contains("ended"));
  });
}

bool ClusterLink::silent(const Peer& peer, double now) const {
  return peer.seenAt < 0 || now - peer.seenAt > options_.lostAfter;
}

/// Whether this node stopped for so long that another one had to hold it for lost, and that one was not
/// heard of for long since: `heardAt` is when it was last.
bool ClusterLink::givenUpFor(const RunningTime::Stop& stop, double heardAt) const {
  return stop.seconds >= options_.lostAfter - 2 * options_.beat && heardAt < stop.until + options_.lostAfter;
}

std::vector<NodeReport> ClusterLink::nodesLocked() {
  const double now = time_.now();
  std::vector<NodeReport> all;
  for (int rank = 0; rank < options_.nodeCount; ++rank) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    NodeReport node;
    node.node = rank;
    node.name = nameLocked(rank);
    node.silent = rank != 0 && silent(peer, now);
    node.silence = peer.seenAt < 0 ? -1 : now - peer.seenAt;
    // One that gave this node up may go on sending heartbeats; one that fell silent later did not.
    if (const auto stop = time_.longestStop(); rank != 0 && stop.seconds > 0 && peer.seenAt >= 0)
      node.lostInStop = givenUpFor(stop, node.silent ? peer.seenAt : stop.until) ? stop.seconds : 0;
    node.gone = goneLocked(rank);
    if (peer.sign.is_object() && peer.sign.value("round", "") == round_ && peer.sign.contains("ranks") &&
        peer.sign["ranks"].is_array())
      for (const Json& entry : peer.sign["ranks"])
        if (auto report = rankReportFromJson(entry, "sign"); report.ok())
          node.ranks.push_back(std::move(*report));
    all.push_back(std::move(node));
  }
  return all;
}

/// While a round runs, node 0 tells all nodes as soon as it knows who is lost: nobody waits for the dead.
void ClusterLink::publishCulprit() {
  std::string culprit, round;
  {
    const std::lock_guard lock(mutex_);
    if (round_.empty() || !stop_.empty()) return;
    culprit = knownCulprit(nodesLocked());
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
      changed_.wait(lock, [&] { return stopping_ || (!round_.empty() && stop_.empty()); });
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
