// SPDX-License-Identifier: Apache-2.0
// One cluster stage of many nodes in virtual time: the product's ClusterLink and ClusterStage on each node,
// its ranks meeting at barriers, and deaths.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runner/cluster/cluster_stage.h"
#include "tests/bench/protocol/network.h"

namespace muster::bench {

struct ClusterSimOptions {
  int nodes = 8;
  int ranks = 8;      ///< of each node
  int barriers = 5;   ///< before the ranks are at work
  double spread = 5;  ///< seconds over which the nodes start
  double work = 20;   ///< seconds of work after the barriers
  double lostAfter = 10;
  NetworkOptions network;
  uint64_t seed = 1;
};

enum class Death { kNone, kRank, kRunner, kHost, kLeader, kLeaderHost };

/// When it happens. Ranks exist from the barriers to the end of their work.
enum class Moment { kJoining, kBarriers, kWorking, kLeaving };

/// What came of it, in seconds of virtual time but for CPU seconds.
struct ClusterSimResult {
  double lastArrival = 0;
  double joined = 0;                 ///< after the last arrival, until all have entered the stage
  std::vector<double> barriers;      ///< seconds from the last arrival to the last release
  double workCpu = 0, workTime = 0;  ///< of node 0 while the ranks work
  uint64_t workRequests = 0;         ///< that node 0's store got meanwhile
  double stageEnd = 0;               ///< from the end of work until all have left the stage
  double cpu = 0;                    ///< of node 0 in all
  uint64_t requests = 0, bytesIn = 0, bytesOut = 0;
  double diedAt = -1, noticed = 0;  ///< seconds after the death until the last survivor knew
  std::string died;                 ///< what has to be named
  int diedNode = -1;
  std::vector<bool> hadJoined;        ///< by node: it had joined by then
  bool allEnded = false;              ///< all ranks had ended their work by then
  std::vector<std::string> culprits;  ///< by node; of survivors
  std::vector<int> survivors;
};

/// Whether the node that died and this survivor had joined by then. Before, one waits for the other as for a
/// late one.
bool bothJoined(const ClusterSimResult& r, int survivor);

class ClusterSim {
 public:
  explicit ClusterSim(ClusterSimOptions options);
  /// `after`: which part of the moment's span has passed at the death, 0 to 1.
  ClusterSimResult run(Death death = Death::kNone, Moment moment = Moment::kWorking, double after = 0);

 private:
  struct Node {
    std::unique_ptr<SimWorld> world;
    std::vector<RankStatus> ranks;
    std::vector<std::vector<std::unique_ptr<StoreClient>>> clients;
    double noticedAt = -1;
    bool joined = false;
    bool done = false;
  };
  struct Barrier {
    double lastIn = 0, lastOut = 0;
  };

  [[nodiscard]] ClusterOptions linkOptions(int node);
  void live(int node);
  void runRanks(int node, ClusterStage& stage, const ClusterEntry& entry);
  void runRank(int node, int local, const ClusterEntry& entry, StoreClient& store);
  void watchRanks(int node, ClusterRounds& rounds, std::string& lost);
  void beginWork();
  void scheduleDeath(Moment moment, double span);
  void die(Death death);
  void failRank(int node, int local, const std::string& failure, int signal);

  ClusterSimOptions options_;
  Fibers fibers_;
  Network network_;
  std::mt19937_64 random_;
  std::atomic<bool> cancelled_{false};
  std::vector<Node> nodes_;
  std::vector<Barrier> barriers_;
  bool inBarriers_ = false;  ///< the first rank has come to the first one
  int64_t working_ = 0;      ///< ranks that have come to their work
  double workUntil_ = kForever;
  int entered_ = 0, left_ = 0;
  Death death_ = Death::kNone;
  Moment moment_ = Moment::kWorking;
  double deathAfter_ = 0;
  double cpuAtWork_ = 0;
  uint64_t requestsAtWork_ = 0;
  ClusterSimResult result_;
};

}  // namespace muster::bench
