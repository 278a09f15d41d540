// SPDX-License-Identifier: Apache-2.0
// Nodes of the simulation, their ranks, and what is measured of them.
#include "tests/bench/protocol/cluster.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace muster::bench {
namespace {

constexpr double kTurn = 0.1;  // seconds between two looks of a node at its ranks, as the supervisor's
constexpr double kStagePatience = 600;
constexpr double kJoinPatience = 60;
// Seconds from the last arrival, the first barrier and the end of work within which a death may fall.
constexpr double kJoinTime = 0.1;
constexpr double kBarrierTime = 0.1;
constexpr double kLeaveTime = 0.1;
constexpr double kVictims = 0.3;      // share of the other ranks that abort because one died
constexpr double kAbortWithin = 0.2;  // seconds after it

}  // namespace

bool bothJoined(const ClusterSimResult& r, int survivor) {
  return r.hadJoined[static_cast<size_t>(r.diedNode)] && r.hadJoined[static_cast<size_t>(survivor)];
}

ClusterSim::ClusterSim(ClusterSimOptions options)
    : options_(options),
      fibers_(options.nodes, 0),
      network_(fibers_, options.network, options.seed),
      random_(options.seed),
      nodes_(static_cast<size_t>(options.nodes)),
      barriers_(static_cast<size_t>(options.barriers)) {}

ClusterOptions ClusterSim::linkOptions(int node) {
  ClusterOptions o;
  o.nodeRank = node;
  o.nodeCount = options_.nodes;
  o.host = fmt::format("n{}", node);
  o.store = {"n0", 1};
  o.token = "a secret of this simulation, of 32 and more characters";
  o.identity = {{"nodes", std::to_string(options_.nodes)},
                {"Muster", std::string(40, 'b')},
                {"plan", std::string(64, 'p')},
                {"overrides", ""},
                {"scopes", ""},
                {"seed", "42"}};
  o.lostAfter = options_.lostAfter;
  o.beat = heartbeatInterval(options_.nodes, options_.lostAfter);
  o.cancelled = &cancelled_;
  o.clock = &fibers_;
  o.world = nodes_[static_cast<size_t>(node)].world.get();
  return o;
}

ClusterSimResult ClusterSim::run(Death death, Moment moment, double after) {
  death_ = death;
  moment_ = moment;
  deathAfter_ = after;
  std::uniform_real_distribution<double> arrival(0, options_.spread);
  for (int node = 0; node < options_.nodes; ++node) {
    nodes_[static_cast<size_t>(node)].world = std::make_unique<SimWorld>(network_, node);
    const double at = arrival(random_);
    result_.lastArrival = std::max(result_.lastArrival, at);
    fibers_.at(at, node, [this, node] { fibers_.spawn(node, [this, node] { live(node); }); });
  }
  scheduleDeath(Moment::kJoining, result_.lastArrival + kJoinTime);
  const auto allDone = [&] {
    if (left_ == 0) return false;
    for (int node = 0; node < options_.nodes; ++node)
      if (fibers_.alive(node) && !nodes_[static_cast<size_t>(node)].done) return false;
    return true;
  };
  int seen = -1;
  fibers_.run([&] { return std::exchange(seen, left_) != left_ && allDone(); });
  for (int node = 0; node < options_.nodes; ++node) {
    if (!fibers_.alive(node)) continue;
    result_.survivors.push_back(node);
    if (result_.diedNode >= 0 && bothJoined(result_, node))
      result_.noticed =
          std::max(result_.noticed, nodes_[static_cast<size_t>(node)].noticedAt - result_.diedAt);
  }
  for (const Barrier& barrier : barriers_) result_.barriers.push_back(barrier.lastOut - barrier.lastIn);
  result_.cpu = fibers_.meteredSeconds();
  result_.requests = network_.requests;
  result_.bytesIn = network_.bytesIn;
  result_.bytesOut = network_.bytesOut;
  return std::move(result_);
}

void ClusterSim::live(int node) {
  result_.culprits.resize(static_cast<size_t>(options_.nodes));
  std::string& culprit = result_.culprits[static_cast<size_t>(node)];
  {
    auto link = ClusterLink::start(linkOptions(node));
    if (!link.ok()) throw std::runtime_error(link.error().text());
    Status joined = (*link)->members().join(kJoinPatience);
    nodes_[static_cast<size_t>(node)].joined = joined.ok();
    ClusterStage stage(**link, "walk", kStagePatience);
    const ClusterEntry entry = stage.enter(options_.ranks);
    if (!joined.ok()) culprit = joined.error().text();
    if (entry.kind != ClusterEntry::Kind::kGo) culprit += entry.why;
    if (culprit.empty()) {
      if (++entered_ == options_.nodes) result_.joined = fibers_.now() - result_.lastArrival;
      runRanks(node, stage, entry);
    }
  }
  Node& mine = nodes_[static_cast<size_t>(node)];
  if (!culprit.empty() && mine.noticedAt < 0) mine.noticedAt = fibers_.now();
  mine.done = true;
  ++left_;
}

void ClusterSim::runRanks(int node, ClusterStage& stage, const ClusterEntry& entry) {
  Node& mine = nodes_[static_cast<size_t>(node)];
  stage.beginRound(1, 0);
  mine.ranks.resize(static_cast<size_t>(options_.ranks));
  std::vector<std::unique_ptr<StoreClient>> stores;
  for (int local = 0; local < options_.ranks; ++local) {
    RankStatus& status = mine.ranks[static_cast<size_t>(local)];
    status.rank = entry.firstRank + local;
    status.device = fmt::format("gpu{}", local);
    status.state = 'S';
    StoreClientOptions options;
    options.who = fmt::format("rank {}", status.rank);
    stores.push_back(std::move(mine.world->client(*mine.world->server(),
                                                  node == 0 ? "ranks/walk/1/0/" : "walk/1/0/", options))
                         .value());
    fibers_.spawn(
        node, [this, node, local, entry, raw = stores.back().get()] { runRank(node, local, entry, *raw); });
  }
  RoundSight sight;
  watchRanks(node, stage.rounds(), sight.lost);
  sight.begun = {0};
  if (sight.lost.empty()) sight.ended = {0};
  sight.clean = std::all_of(mine.ranks.begin(), mine.ranks.end(),
                            [](const RankStatus& rank) { return rank.failure.empty(); });
  const RoundVerdict verdict = stage.endRound(sight, 1, 60);
  std::string& culprit = result_.culprits[static_cast<size_t>(node)];
  culprit = verdict.culprit;
  const std::string left = stage.leave(culprit);
  if (culprit.empty()) culprit = left;
  if (!culprit.empty() && mine.noticedAt < 0) mine.noticedAt = fibers_.now();
  result_.stageEnd = std::max(result_.stageEnd, fibers_.now() - workUntil_);
  stores.clear();
}

/// What the supervisor does: statuses four times a second and when a rank fails, and whether the round is
/// lost.
void ClusterSim::watchRanks(int node, ClusterRounds& rounds, std::string& lost) {
  Node& mine = nodes_[static_cast<size_t>(node)];
  double reported = -1;
  size_t failures = 0;
  while (true) {
    const auto failed = static_cast<size_t>(std::count_if(
        mine.ranks.begin(), mine.ranks.end(), [](const auto& rank) { return !rank.failure.empty(); }));
    if (fibers_.now() >= reported + 0.25 || failed != failures) {
      rounds.report(mine.ranks);
      reported = fibers_.now();
      failures = failed;
    }
    lost = rounds.lost().text;
    if (!lost.empty()) mine.noticedAt = fibers_.now();
    if (!lost.empty() ||
        std::all_of(mine.ranks.begin(), mine.ranks.end(), [](const RankStatus& rank) { return rank.ended; }))
      break;
    fibers_.sleep(kTurn);
  }
  // What is left of them is killed, and ends.
  for (RankStatus& rank : mine.ranks) rank.ended = true;
}

void ClusterSim::runRank(int node, int local, const ClusterEntry& entry, StoreClient& store) {
  RankStatus& status = nodes_[static_cast<size_t>(node)].ranks[static_cast<size_t>(local)];
  const auto gone = [&] { return status.ended || !status.failure.empty(); };
  const std::string id = "unique-id";
  const Status met = status.rank == 0
                         ? store.set(id, std::string(128, 'u'))
                         : Status(store.get(id, 60).ok() ? Status() : Error{ErrorCode::kIo, "no id", ""});
  if (gone()) return;
  if (!met.ok()) return failRank(node, local, "exited with code 1: " + met.error().text(), 0);
  if (!std::exchange(inBarriers_, true)) scheduleDeath(Moment::kBarriers, kBarrierTime);
  for (int step = 0; step < options_.barriers; ++step) {
    Barrier& barrier = barriers_[static_cast<size_t>(step)];
    barrier.lastIn = std::max(barrier.lastIn, fibers_.now());
    const Status all = store.barrier(fmt::format("step/{}", step), status.rank, entry.worldSize, 60);
    if (gone()) return;
    if (!all.ok()) return failRank(node, local, "exited with code 1: " + all.error().text(), 0);
    barrier.lastOut = std::max(barrier.lastOut, fibers_.now());
  }
  if (++working_ == int64_t{options_.nodes} * options_.ranks) beginWork();
  while (!gone() && fibers_.now() < workUntil_)
    fibers_.sleep(std::min(1.0, std::max(1e-3, workUntil_ - fibers_.now())));
  if (!gone()) status.ended = true;
}

void ClusterSim::beginWork() {
  workUntil_ = fibers_.now() + options_.work;
  cpuAtWork_ = fibers_.meteredSeconds();
  requestsAtWork_ = network_.requests;
  fibers_.at(workUntil_, 0, [this] {
    result_.workCpu = fibers_.meteredSeconds() - cpuAtWork_;
    result_.workTime = options_.work;
    result_.workRequests = network_.requests - requestsAtWork_;
  });
  scheduleDeath(Moment::kWorking, options_.lostAfter);
  fibers_.at(workUntil_, 1, [this] { scheduleDeath(Moment::kLeaving, kLeaveTime); });
}

void ClusterSim::scheduleDeath(Moment moment, double span) {
  if (death_ != Death::kNone && moment == moment_)
    fibers_.after(deathAfter_ * span, 1, [this] { die(death_); });
}

void ClusterSim::failRank(int node, int local, const std::string& failure, int signal) {
  std::vector<RankStatus>& ranks = nodes_[static_cast<size_t>(node)].ranks;
  if (ranks.empty() || ranks[static_cast<size_t>(local)].ended) return;
  RankStatus& status = ranks[static_cast<size_t>(local)];
  status.failure = failure;
  status.signal = signal;
  status.ended = true;
}

void ClusterSim::die(Death death) {
  std::uniform_int_distribution<int> anyNode(0, options_.nodes - 1), other(1, options_.nodes - 1);
  std::uniform_real_distribution<double> draw(0, 1);
  const bool leads = death == Death::kLeader || death == Death::kLeaderHost;
  int node = leads ? 0 : other(random_);
  if (death == Death::kRank) do
      node = anyNode(random_);
    while (nodes_[static_cast<size_t>(node)].ranks.empty());  // its node has not started them yet
  result_.diedAt = fibers_.now();
  result_.diedNode = node;
  for (const Node& one : nodes_) result_.hadJoined.push_back(one.joined);
  result_.allEnded = fibers_.now() >= workUntil_;
  if (death != Death::kRank) {
    result_.died = leads ? "lost node 0 (n0)" : fmt::format("node {} (n{}) was lost", node, node);
    return network_.kill(node, death == Death::kHost || death == Death::kLeaderHost);
  }
  const int local = static_cast<int>(random_() % static_cast<uint64_t>(options_.ranks));
  result_.died =
      fmt::format("rank {} (gpu{} of node {} (n{}))", node * options_.ranks + local, local, node, node);
  failRank(node, local, "was killed by SIGKILL (Killed)", SIGKILL);
  // Its peers' library notices, and ends them: on other nodes, in any order.
  for (int peer = 0; peer < options_.nodes; ++peer)
    for (int rank = 0; rank < options_.ranks; ++rank) {
      if (draw(random_) > kVictims) continue;
      const bool aborts = draw(random_) < 0.5;
      fibers_.after(draw(random_) * kAbortWithin, peer, [this, peer, rank, aborts] {
        failRank(peer, rank, aborts ? "was killed by SIGABRT (Aborted)" : "exited with code 1",
                 aborts ? SIGABRT : 0);
      });
    }
}

}  // namespace muster::bench
