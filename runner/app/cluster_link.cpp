// SPDX-License-Identifier: Apache-2.0
// See cluster_link.h: start and end, who takes part, rounds. Signs of life are in cluster_signs.cpp,
// agreements in cluster_agree.cpp.
#include "runner/app/cluster_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/secret.h"
#include "runner/core/text.h"
#include "runner/rendezvous/store_key.h"

namespace muster {
namespace {

constexpr const char* kRankKeys = "ranks/";  // what all keys of ranks begin with
constexpr double kConnectTimeout = 1;        // of one try; threads try again and again
constexpr double kLeastStop = 1;  // seconds without a look at the clock that count as a stop of this process
constexpr double kLastReaders = 5;  // seconds that the store outlives the run for the last decision

}  // namespace

ClusterLink::ClusterLink(ClusterOptions options)
    : options_(std::move(options)), time_(*options_.clock, std::max(kLeastStop, 2 * options_.beat)) {
  answeredAt_ = time_.now();
  peers_.resize(static_cast<size_t>(options_.nodeCount));
}

Result<std::unique_ptr<ClusterLink>> ClusterLink::start(ClusterOptions options) {
  std::unique_ptr<ClusterLink> link(new ClusterLink(std::move(options)));
  MUSTER_TRY(link->nonce_, randomSecret());
  MUSTER_CHECK_OK(link->leads() ? link->serve() : link->relay());
  StoreClientOptions client;
  client.address = link->storeAddress();
  client.prefix = "muster/";
  client.key = storeKey(link->options_.token, client.prefix);
  client.who = fmt::format("node {} ({})", link->options_.nodeRank, link->options_.host);
  client.connectTimeout = kConnectTimeout;
  client.answerTimeout = std::max(1.0, link->options_.lostAfter / 2);
  client.cancelled = [raw = link.get()] {
    const std::lock_guard lock(raw->mutex_);
    return raw->stopping_;
  };
  link->client_ = std::make_unique<StoreClient>(client);
  link->pulseThread_ = std::thread([raw = link.get()] { raw->pulse(); });
  link->watchThread_ = std::thread([raw = link.get()] { raw->watch(); });
  link->tickThread_ = std::thread([raw = link.get()] { raw->tick(); });
  return link;
}

Status ClusterLink::serve() {
  StoreServerOptions server;
  server.bind = options_.store.host;
  server.port = options_.store.port;
  server.token = options_.token;
  server.limits = StoreLimits::forNodes(static_cast<size_t>(options_.nodeCount));
  auto started = StoreServer::start(server);
  if (!started.ok() && started.error().code == ErrorCode::kUsage && !server.token.empty()) {
    server.bind = "";  // a name that only the other nodes know
    started = StoreServer::start(server);
  }
  if (!started.ok()) return std::move(started).error().context("serving the store of node 0");
  server_ = std::move(*started);
  return {};
}

Status ClusterLink::relay() {
  StoreRelayOptions relay;
  relay.address = options_.store;
  relay.prefix = kRankKeys;
  relay.key = storeKey(options_.token, relay.prefix);
  relay.who = fmt::format("node {} ({})", options_.nodeRank, options_.host);
  MUSTER_TRY(server_, StoreServer::startRelay(std::move(relay)));
  return {};
}

Result<Fd> ClusterLink::connectRank(const std::string& round) {
  return server_->connect((leads() ? kRankKeys : "") + round + "/");
}

ClusterLink::~ClusterLink() {
  if (leads() && client_ != nullptr) awaitReaders();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (pulseThread_.joinable()) pulseThread_.join();
  if (watchThread_.joinable()) watchThread_.join();
  if (tickThread_.joinable()) tickThread_.join();
}

void ClusterLink::awaitReaders() {
  if (question_.empty() || readers_ == 0) return;
  const double end = time_.now() + kLastReaders;
  while (time_.now() < end) {
    const auto read = client_->add("q/" + question_ + "/read", 0);
    if (!read.ok() || *read >= readers_) return;
    pause(0.05);
  }
}

Status ClusterLink::join(double patience) {
  const double end = time_.now() + patience;
  std::unique_lock lock(mutex_);
  while (!joined_ && refused_.empty() && time_.now() < end)
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  if (refused_.empty()) return {};
  return Error{ErrorCode::kUsage, refused_, ""};
}

void ClusterLink::rollCall(double patience) {
  constexpr const char* kName = "roll-call";
  const double end = time_.now() + patience;
  const auto absent = [&] {
    const std::lock_guard lock(mutex_);
    std::vector<int> ranks;
    for (int rank = 0; rank < options_.nodeCount; ++rank)
      if (peers_[static_cast<size_t>(rank)].seenAt < 0) ranks.push_back(rank);
    return ranks;
  };
  std::vector<int> missing = absent();
  while (!missing.empty() && time_.now() < end && !options_.cancelled->load()) {
    for (const int rank : missing)
      if (!readSign(rank)) break;
    missing = absent();
    if (!missing.empty()) pause(options_.beat / 2);
  }
  if (!leads()) return (void)client_->add(fmt::format("q/{}/read", kName), 1).ok();
  question_ = kName;
  readers_ = options_.nodeCount - 1 - static_cast<int64_t>(missing.size());
}

void ClusterLink::leaveTogether() {
  constexpr const char* kName = "leave";
  {
    const std::lock_guard lock(mutex_);
    ended_ = hurry_ = true;
    changed_.notify_all();
  }
  const std::string key = fmt::format("q/{}/decision", kName);
  if (leads()) {
    while (stillAtWork() > 0 && !options_.cancelled->load()) pause(options_.beat);
    if (!client_->set(key, "1").ok()) return;
    const std::lock_guard lock(mutex_);
    const double now = time_.now();
    question_ = kName;
    readers_ =
        std::count_if(peers_.begin() + 1, peers_.end(), [&](const Peer& peer) { return !silent(peer, now); });
    return;
  }
  while (!options_.cancelled->load()) {
    const auto left = client_->get(key, options_.beat);
    answered(left.ok() ? Status() : Status(left.error()));
    if (left.ok()) return (void)client_->add(fmt::format("q/{}/read", kName), 1).ok();
    if (left.error().code != ErrorCode::kTimeout) pause(options_.beat);
    const std::lock_guard lock(mutex_);
    if (!joined_ || !lostLeader().empty()) return;
  }
}

void ClusterLink::answered(const Status& status) {
  const std::lock_guard lock(mutex_);
  // A wait that was in vain was answered, too.
  if (status.ok() || status.error().code == ErrorCode::kTimeout) {
    answeredAt_ = time_.now();
    return;
  }
  trouble_ = status.error().text();
  if (status.error().code == ErrorCode::kProtocol && !joined_ && refused_.empty())
    refused_ = "cannot join the run: " + trouble_;
}

void ClusterLink::pause(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stopping_ || hurry_; });
}

/// Calls of the other threads may wait for an answer for seconds.
void ClusterLink::tick() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    (void)time_.now();
    changed_.wait_for(lock, std::chrono::duration<double>(options_.beat), [&] { return stopping_; });
  }
}

void ClusterLink::hold(Members members) {
  const std::lock_guard lock(mutex_);
  members_ = std::move(members);
  heldSince_ = time_.now();
  time_.forget();
}

void ClusterLink::leave() {
  const std::lock_guard lock(mutex_);
  members_.clear();
}

void ClusterLink::noteFinished(const std::string& stage, const std::string& outcome) {
  const std::lock_guard lock(mutex_);
  members_.clear();
  options_.finished[stage] = outcome;
}

std::optional<std::string> ClusterLink::finishedLocked(int rank, const std::string& stage) const {
  if (rank == options_.nodeRank) {
    const auto own = options_.finished.find(stage);
    return own == options_.finished.end() ? "" : own->second;
  }
  const Json& sign = peers_[static_cast<size_t>(rank)].sign;
  if (!sign.is_object()) return std::nullopt;
  const auto finished = sign.find("finished");
  if (finished == sign.end() || !finished->is_object() || !finished->contains(stage)) return "";
  const Json& outcome = (*finished)[stage];
  return outcome.is_string() ? printable(outcome.get<std::string>(), 20) : std::string("?");
}

std::vector<std::optional<std::string>> ClusterLink::finishedOn(const std::string& stage) {
  // Node 0 knows all signs; the others look at them just for this.
  if (!leads())
    for (int rank = 0; rank < options_.nodeCount; ++rank)
      if (!readSign(rank)) break;
  const std::lock_guard lock(mutex_);
  std::vector<std::optional<std::string>> states;
  for (int rank = 0; rank < options_.nodeCount; ++rank) states.push_back(finishedLocked(rank, stage));
  return states;
}

/// Whether a node of the stage is another start of itself by now. A sign that is older than the stage says
/// nothing: the new start may give its own first sign a moment after its first answer.
bool ClusterLink::startedAgain(int rank) const {
  const auto index = static_cast<size_t>(rank);
  const Peer& peer = peers_[index];
  return index < members_.size() && peer.seenAt > heldSince_ && peer.sign.is_object() &&
         peer.sign.value("nonce", "") != members_[index];
}

std::string ClusterLink::goneLocked(int rank) const {
  if (startedAgain(rank)) return "was started again in the middle of this stage";
  const Json& sign = peers_[static_cast<size_t>(rank)].sign;
  return sign.is_object() && sign.contains("interrupted") ? "was interrupted by its user" : "";
}

void ClusterLink::beginRound(const std::string& name) {
  const std::lock_guard lock(mutex_);
  round_ = name;
  stop_.clear();
  failureSeenAt_ = -1;
  watch_ = {};
  changed_.notify_all();
}

void ClusterLink::endRound() {
  const std::lock_guard lock(mutex_);
  round_.clear();
}

void ClusterLink::report(const std::vector<RankStatus>& statuses) {
  const std::lock_guard lock(mutex_);
  const bool parts = options_.cancelled->load() && !parting_;
  if (watch_.look(statuses, time_.now()) || parts) {
    parting_ = parting_ || parts;
    hurry_ = true;
    changed_.notify_all();
  }
}

std::string ClusterLink::lostLeader() {
  if (leads()) return "";
  if (startedAgain(0))
    return fmt::format("{} lost {}, which was started again in the middle of this stage",
                       nameLocked(options_.nodeRank), nameLocked(0));
  const double silence = time_.now() - answeredAt_;
  if (silence <= options_.lostAfter) return "";
  const std::string me = nameLocked(options_.nodeRank);
  const std::string why =
      fmt::format("no answer for {:.0f} s ({})", silence, trouble_.empty() ? "no error was told" : trouble_);
  if (const auto stop = time_.longestStop(); stop.seconds > 0 && givenUpFor(stop, answeredAt_))
    return stoppedNode(me, stop.seconds);
  if (options_.nodeCount == 2) return lostEachOther(why);
  return fmt::format("{} lost {}, which serves the store: {}", me, nameLocked(0), why);
}

std::string ClusterLink::lost() {
  const std::lock_guard lock(mutex_);
  return stop_.empty() ? lostLeader() : stop_;
}

std::vector<RankReport> ClusterLink::ownReports() {
  const std::lock_guard lock(mutex_);
  return watch_.reports();
}

std::vector<NodeReport> ClusterLink::nodes() {
  const std::lock_guard lock(mutex_);
  return nodesLocked();
}

std::string ClusterLink::nameLocked(int rank) const {
  const auto index = static_cast<size_t>(rank);
  std::string host;
  if (rank == options_.nodeRank)
    host = options_.host;
  else if (peers_[index].sign.is_object())
    host = printable(peers_[index].sign.value("host", ""), 100);
  if (host.empty() && index < options_.nodes.size()) host = options_.nodes[index];
  return host.empty() ? fmt::format("node {}", rank) : fmt::format("node {} ({})", rank, host);
}

std::string ClusterLink::nodeName(int rank) {
  const std::lock_guard lock(mutex_);
  return nameLocked(rank);
}

StoreAddress ClusterLink::storeAddress() const {
  return leads() ? StoreAddress{server_->host(), server_->port()} : options_.store;
}

std::string ClusterLink::turnedAway() {
  if (!leads()) return "";
  const StoreCounts now = server_->counts();
  return muster::turnedAway(now, std::exchange(told_, now));
}

std::string ClusterLink::mismatch(int rank) {
  const std::lock_guard lock(mutex_);
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  if (rank == options_.nodeRank || peer.seenAt < 0) return "";
  return identityProblem(peer.sign, nameLocked(rank), false);
}

}  // namespace muster
