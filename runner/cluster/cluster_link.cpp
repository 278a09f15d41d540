// SPDX-License-Identifier: Apache-2.0
// See cluster_link.h: start and end, who takes part, rounds. Heartbeats are in cluster_heartbeat.cpp,
// agreements in cluster_agree.cpp.
#include "runner/cluster/cluster_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/secret.h"
#include "runner/core/text.h"
#include "runner/rendezvous/wire/store_key.h"

namespace muster {
namespace {

constexpr const char* kRankKeys = "ranks/";     // what all keys of ranks begin with
constexpr const char* kRunnerKeys = "muster/";  // and those of runners
constexpr double kConnectTimeout = 1;           // of one try; threads try again and again
constexpr double kLeastStop = 1;  // seconds without a look at the clock that count as a stop of this process
constexpr int kFinishedTurns = 6;
constexpr double kLastReaders = 5;  // seconds that the store outlives the run for the last decision

}  // namespace

ClusterLink::ClusterLink(ClusterOptions options)
    : options_(std::move(options)),
      time_(*options_.clock, std::max(kLeastStop, 2 * options_.beat)),
      peers_(options_),
      tasks_(options_.world->tasks()) {
  answeredAt_ = time_.now();
}

Result<std::unique_ptr<ClusterLink>> ClusterLink::start(ClusterOptions options) {
  std::unique_ptr<ClusterLink> link(new ClusterLink(std::move(options)));
  MUSTER_TRY(link->nonce_, randomSecret());
  MUSTER_CHECK_OK(link->leads() ? link->serve() : link->relay());
  StoreClientOptions client;
  client.who = fmt::format("node {} ({})", link->options_.nodeRank, link->options_.host);
  client.connectTimeout = kConnectTimeout;
  client.answerTimeout = std::max(1.0, link->options_.lostAfter / 2);
  client.cancelled = [raw = link.get()] {
    const std::lock_guard lock(raw->mutex_);
    return raw->stopping_;
  };
  if (link->leads()) {
    MUSTER_TRY(link->client_, link->options_.world->client(*link->server_, kRunnerKeys, client));
  } else {
    client.address = link->options_.store;
    client.prefix = kRunnerKeys;
    client.key = storeKey(link->options_.token, client.prefix);
    link->client_ = link->options_.world->client(client);
  }
  link->tasks_->start([raw = link.get()] { raw->pulse(); });
  if (!link->leads()) link->tasks_->start([raw = link.get()] { raw->beat(); });
  link->tasks_->start([raw = link.get()] { raw->tick(); });
  return link;
}

Status ClusterLink::serve() {
  StoreServerOptions server;
  server.bind = options_.store.host;
  server.port = options_.store.port;
  server.token = options_.token;
  server.limits = StoreLimits::forNodes(static_cast<size_t>(options_.nodeCount));
  auto started = options_.world->serve(server);
  if (!started.ok() && started.error().code == ErrorCode::kUsage && !server.token.empty()) {
    server.bind = "";  // a name that only the other nodes know
    started = options_.world->serve(server);
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
  MUSTER_TRY(server_, options_.world->relay(std::move(relay)));
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
  tasks_->notify();
  tasks_->join();
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
  while (!joined_ && refused_.empty() && time_.now() < end) tasks_->wait(lock, end - time_.now());
  if (refused_.empty()) return {};
  return Error{ErrorCode::kUsage, refused_, ""};
}

void ClusterLink::rollCall(double patience) {
  constexpr const char* kName = "roll-call";
  const double end = time_.now() + patience;
  int seen = 0;
  while (seen < options_.nodeCount && time_.now() < end && !options_.cancelled->load()) {
    if (leads())
      publishFinished();
    else
      readFinished();
    {
      const std::lock_guard lock(mutex_);
      seen = finished_.seen;
    }
    if (seen < options_.nodeCount) pause(options_.beat / 2);
  }
  if (!leads()) return (void)client_->add(fmt::format("q/{}/read", kName), 1).ok();
  question_ = kName;
  readers_ = std::max(0, seen - 1);
}

void ClusterLink::leaveTogether() {
  constexpr const char* kName = "leave";
  {
    const std::lock_guard lock(mutex_);
    ended_ = hurry_ = true;
    tasks_->notify();
  }
  const std::string key = fmt::format("q/{}/decision", kName);
  if (leads()) {
    const auto atWork = [&] {
      const std::lock_guard lock(mutex_);
      return peers_.othersAtWork(time_.now());
    };
    while (atWork() > 0 && !options_.cancelled->load()) pause(options_.beat);
    if (!client_->set(key, "1").ok()) return;
    const std::lock_guard lock(mutex_);
    question_ = kName;
    readers_ = peers_.liveOthers(time_.now());
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
  if (!refused_.empty()) tasks_->notify();
}

void ClusterLink::pause(double seconds) {
  const double end = options_.clock->now() + seconds;
  std::unique_lock lock(mutex_);
  for (double left = seconds; left > 0 && !stopping_ && !hurry_; left = end - options_.clock->now())
    tasks_->wait(lock, left);
}

/// Calls of the other threads may wait for an answer for seconds.
void ClusterLink::tick() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    (void)time_.now();
    tasks_->wait(lock, options_.beat);
  }
}

void ClusterLink::hold(Members members) {
  const std::lock_guard lock(mutex_);
  peers_.hold(std::move(members), time_.now());
  time_.forget();
}

void ClusterLink::leave() {
  const std::lock_guard lock(mutex_);
  peers_.release();
}

void ClusterLink::noteFinished(const std::string& stage, const std::string& outcome) {
  const std::lock_guard lock(mutex_);
  peers_.release();
  options_.finished[stage] = outcome;
  statusesNew_ = true;
}

std::string ClusterLink::finishedWhere(const std::string& stage) {
  if (leads()) {
    const std::lock_guard lock(mutex_);
    return peers_.disagreement(stage);
  }
  // Node 0 says in its own status that it has finished a stage a moment before it tells who else has.
  for (int turn = 0; turn < kFinishedTurns; ++turn) {
    readFinished();
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = finished_.stages.find(stage); found != finished_.stages.end())
        return found->second;
    }
    pause(options_.beat);
  }
  return fmt::format("it is on {}, and not on {}", nodeName(0), nodeName(options_.nodeRank));
}

void ClusterLink::beginRound(const std::string& name) {
  const std::lock_guard lock(mutex_);
  round_ = name;
  failureSeenAt_ = -1;
  watch_ = {};
  tasks_->notify();
}

void ClusterLink::endRound() {
  const std::lock_guard lock(mutex_);
  round_.clear();
}

void ClusterLink::clearRound(const std::string& name) {
  if (!leads()) return;
  if (auto ranks = options_.world->client(*server_, kRankKeys, {}); ranks.ok())
    (void)(*ranks)->clear(name + "/").ok();
  (void)client_->clear("order/" + name).ok();
}

void ClusterLink::report(const std::vector<RankStatus>& statuses) {
  const std::lock_guard lock(mutex_);
  const bool parts = options_.cancelled->load() && !parting_;
  if (watch_.look(statuses, time_.now()) || parts) {
    parting_ = parting_ || parts;
    hurry_ = true;
    tasks_->notify();
  }
}

std::string ClusterLink::lostLeader() {
  if (leads()) return "";
  if (peers_.startedAgain(0))
    return fmt::format("{} lost {}, which was started again in the middle of this stage",
                       peers_.name(options_.nodeRank), peers_.name(0));
  const double silence = time_.now() - answeredAt_;
  if (silence <= options_.lostAfter) return "";
  const std::string me = peers_.name(options_.nodeRank);
  const std::string why = fmt::format("no answer for {:.0f} s ({})", silence,
                                      trouble_.empty() ? "no error was reported" : trouble_);
  if (const auto stop = time_.longestStop(); stop.seconds > 0 && peers_.givenUpFor(stop, answeredAt_))
    return stoppedNode(me, stop.seconds);
  if (options_.nodeCount == 2) return lostEachOther(why);
  return fmt::format("{} lost {}, which serves the store: {}", me, peers_.name(0), why);
}

std::string ClusterLink::lost() {
  const std::lock_guard lock(mutex_);
  const std::string culprit = published();
  return culprit.empty() ? lostLeader() : culprit;
}

std::string ClusterLink::published() const {
  return !round_.empty() && news_.round == round_ ? news_.culprit : "";
}

std::vector<RankReport> ClusterLink::ownReports() {
  const std::lock_guard lock(mutex_);
  return watch_.reports();
}

std::vector<NodeReport> ClusterLink::nodes() {
  const std::lock_guard lock(mutex_);
  return peers_.reports(round_, time_.longestStop(), time_.now());
}

std::string ClusterLink::nodeName(int rank) {
  const std::lock_guard lock(mutex_);
  return peers_.name(rank);
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
  return peers_.identityProblem(rank, false);
}

}  // namespace muster
