// SPDX-License-Identifier: Apache-2.0
// What a node knows of the other nodes of its run: who they are, whether they live, what they have finished.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/cluster/cluster_evidence.h"
#include "runner/cluster/running_time.h"
#include "runner/core/clock.h"
#include "runner/core/result.h"
#include "runner/rendezvous/store_world.h"
#include "runner/rendezvous/wire/store_address.h"

namespace muster {

/// What all nodes of a run must have in common, in the order in which it is compared: {"plan", sha256} ...
using NodeIdentity = std::vector<std::pair<std::string, std::string>>;

/// Between the name of a node and why.
constexpr std::string_view kDeclines = " does not take part: ";

struct ClusterOptions {
  int nodeRank = 0;
  int nodeCount = 1;
  std::string host;                ///< name of this host
  std::vector<std::string> nodes;  ///< names by node rank, where the launcher tells them
  StoreAddress store;              ///< where node 0 serves
  std::string token;               ///< the secret that all nodes share
  NodeIdentity identity;
  std::set<std::string> stages;  ///< of all nodes, in the plan: a node can have finished no others
  /// Stages of all nodes that an earlier start of this run finished, and their outcome here.
  std::map<std::string, std::string> finished;
  std::map<std::string, std::string> declined;  ///< those in which it did not take part, and why
  double beat = 0.5;                            ///< seconds between heartbeats
  double lostAfter = 10;                        ///< seconds without one after which a node counts as lost
  const std::atomic<bool>* cancelled = nullptr;
  const Clock* clock = &systemClock();
  StoreWorld* world = &thisMachine();
};

/// Seconds between two heartbeats of a node. Node 0 reads all of them: in large runs they are rarer.
double heartbeatInterval(int nodes, double lostAfter);

/// A node that takes part in a stage of all nodes. One that was started again is another one.
struct Member {
  std::string start;  ///< what this start of it drew for itself alone
  int firstRank = 0;  ///< of the group's ranks
  int rankCount = 0;
};
/// By node rank: all of them on node 0; elsewhere node 0 is enough.
using Members = std::vector<Member>;

/// What a node reports of itself to node 0. Sent only when it changes; heartbeats, which carry no data, show
/// that the node is alive.
struct NodeStatus {
  std::string nonce;  ///< what this start of the node drew
  std::string host;
  std::map<std::string, std::string> identity;
  std::map<std::string, std::string> finished;  ///< stages of all nodes, and their outcome there
  std::map<std::string, std::string> declined;  ///< those in which it does not take part, and why
  std::string round;
  std::vector<RankReport> failures;  ///< its ranks that fail in this round
  bool interrupted = false;          ///< by its user
  bool ended = false;                ///< its run has ended
};

std::string statusText(const NodeStatus& status);
/// From another process: kProtocol for anything but a node status.
Result<NodeStatus> statusFromText(std::string_view text);

/// Not thread-safe. Times are seconds of one clock, in which the node's own stops do not count.
class ClusterPeers {
 public:
  /// `options` must outlive it.
  explicit ClusterPeers(const ClusterOptions& options);

  void takeHeartbeat(int rank, double now) { at(rank).seenAt = now; }
  /// The latest status of a node; none: it cannot be read.
  void takeStatus(int rank, std::optional<NodeStatus> status, double now);
  /// Stop waiting for the first status of this node.
  void giveUp(int rank) { at(rank).givenUp = true; }

  /// From now on who of these is started again is gone; empty: nobody is looked at.
  void hold(Members members, double now);
  void release() { members_.clear(); }
  /// This node has finished a stage.
  void noteFinished(const std::string& stage, const std::string& outcome);
  [[nodiscard]] const std::map<std::string, std::string>& ownFinished() const { return finished_; }
  /// This node does not take part in a stage.
  void noteDeclined(const std::string& stage, const std::string& why);
  [[nodiscard]] const std::map<std::string, std::string>& ownDeclined() const { return declined_; }
  /// How many statuses and finished stages have come, from 1.
  [[nodiscard]] uint64_t changes() const { return changes_; }

  [[nodiscard]] const NodeStatus* status(int rank) const {
    return at(rank).status ? &*at(rank).status : nullptr;
  }
  /// "node 2 (n2)", as the launcher calls it, or as it calls itself; "node 2" where neither is known, and
  /// where what it calls itself is no plain name or another node has it, too.
  [[nodiscard]] std::string name(int rank) const;
  [[nodiscard]] bool seen(int rank) const { return at(rank).seenAt >= 0; }
  [[nodiscard]] int seenCount() const;
  [[nodiscard]] bool silent(int rank, double now) const;
  /// Whether one that has not answered since `now` may still do so.
  [[nodiscard]] bool mayStillAnswer(int rank, double now) const;
  /// Whether a node of the stage is another start of itself by now.
  [[nodiscard]] bool startedAgain(int rank) const;
  /// How a node left: "was interrupted by its user"; empty: it did not.
  [[nodiscard]] std::string gone(int rank) const;
  /// Other nodes that live, and those of them that have not ended their runs.
  [[nodiscard]] int64_t liveOthers(double now) const;
  [[nodiscard]] int64_t othersAtWork(double now) const;
  /// What sets a node apart from this one, with both values, or an empty text. `theyLead` is the order in
  /// which they are named.
  [[nodiscard]] std::string identityProblem(int rank, bool theyLead) const;

  /// How a node finished a stage: empty when it has not; nothing for one that is not there.
  [[nodiscard]] std::optional<std::string> finished(int rank, const std::string& stage) const;
  /// "node 2 (n2) does not take part: WHY", of another node; empty where it has not said so.
  [[nodiscard]] std::string whyDeclined(int rank, const std::string& stage) const;
  /// Which nodes have finished a stage and which have not: "it is on ..., and not on ..."; empty where nobody
  /// has.
  [[nodiscard]] std::string disagreement(const std::string& stage) const;
  /// The same for all stages that any node has finished.
  [[nodiscard]] std::map<std::string, std::string> disagreements() const;

  /// What is known of every node, with the ranks that fail in `round`. `stop`: this node's own longest stop.
  [[nodiscard]] std::vector<NodeReport> reports(const std::string& round, const RunningTime::Stop& stop,
                                                double now) const;
  /// Whether this node stopped for so long that another one had to declare it lost, and that one was not
  /// heard from for long since: `heardAt` is when it was last.
  [[nodiscard]] bool givenUpFor(const RunningTime::Stop& stop, double heardAt) const;

 private:
  struct Peer {
    std::optional<NodeStatus> status;
    bool statusGiven = false;
    double seenAt = -1;    ///< when its status or its heartbeat last changed
    bool givenUp = false;  ///< see giveUp()
  };
  [[nodiscard]] std::string hostOf(int rank) const;
  [[nodiscard]] Peer& at(int rank) { return peers_[static_cast<size_t>(rank)]; }
  [[nodiscard]] const Peer& at(int rank) const {
    static const Peer unknown;
    return static_cast<size_t>(rank) < peers_.size() ? peers_[static_cast<size_t>(rank)] : unknown;
  }

  const ClusterOptions& options_;
  std::map<std::string, int> claims_;            ///< how many nodes call themselves so, up to the first dot
  std::vector<Peer> peers_;                      ///< on node 0 all, elsewhere only node 0
  std::map<std::string, std::string> finished_;  ///< this node's own stages
  std::map<std::string, std::string> declined_;
  uint64_t changes_ = 1;
  Members members_;  ///< of the stage that this node is in
  double heldSince_ = 0;
};

}  // namespace muster
