// SPDX-License-Identifier: Apache-2.0
// The tie between the nodes of one run: node 0's store, heartbeats, agreements, and who was lost.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runner/app/cluster_evidence.h"
#include "runner/app/running_time.h"
#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/store_server.h"

namespace muster {

/// What all nodes of a run must have in common, in the order in which it is compared: {"plan", sha256} ...
using NodeIdentity = std::vector<std::pair<std::string, std::string>>;

struct ClusterOptions {
  int nodeRank = 0;
  int nodeCount = 1;
  std::string host;                ///< name of this host
  std::vector<std::string> nodes;  ///< names by node rank, where the launcher tells them
  StoreAddress store;              ///< where node 0 serves
  std::string token;               ///< the secret that all nodes share
  NodeIdentity identity;
  /// Stages of all nodes that an earlier start of this run finished, and their outcome here.
  std::map<std::string, std::string> finished;
  double beat = 0.5;      ///< seconds between heartbeats
  double lostAfter = 10;  ///< seconds without one after which a node counts as lost
  const std::atomic<bool>* cancelled = nullptr;
  const Clock* clock = &systemClock();
};

/// Who takes part in a stage of all nodes: by node rank, what each start of a node drew for itself alone. A
/// node that was started again is another one.
using Members = std::vector<std::string>;

/// One node's end of the tie. Node 0 serves the store and decides. Methods are for the thread that runs
/// stages; beside it one thread sends heartbeats (and reads them, on node 0), one waits for what node 0
/// publishes, and one looks at the clock.
class ClusterLink {
 public:
  /// On node 0 an Error is a store that cannot be served. Elsewhere node 0 may still be ahead.
  static Result<std::unique_ptr<ClusterLink>> start(ClusterOptions options);
  /// Node 0 gives the others a moment to read its last decision before the store goes.
  ~ClusterLink();
  ClusterLink(const ClusterLink&) = delete;
  ClusterLink& operator=(const ClusterLink&) = delete;

  /// Waits for up to `patience` seconds for node 0; kUsage when this node runs something else than node 0
  /// (names what, and both values) or when another host already has its rank. That node 0 is not there yet is
  /// no error.
  Status join(double patience);

  /// Of a run that is resumed: waits for up to `patience` seconds until all nodes are there, so that each
  /// knows what the others have finished, whoever ends first.
  void rollCall(double patience);

  /// Waits until all nodes that are alive have ended their runs, too; for launchers that end all nodes once
  /// the first one leaves with a bad exit code.
  void leaveTogether();

  /// Answers of all nodes to one question, by node rank: nothing where a node did not answer.
  using Answers = std::vector<std::optional<Json>>;
  using Decide = std::function<Json(const Answers&)>;
  /// Asks all nodes the question `name` (no name is used twice): each gives `mine`, node 0 decides once all
  /// have answered, those who have not are lost, or `patience` seconds have passed; all get what it decided.
  /// kTimeout: node 0 did not come to the question. kIo: node 0 was lost. kUsage: as join(). `stage`: where
  /// the question is whether to enter that stage; nodes that have finished it are not waited for, and where
  /// node 0 has, the answer is {"finished": true}.
  Result<Json> agree(const std::string& name, const Json& mine, double patience, const Decide& decide,
                     const std::string& stage = "");

  /// Gives this node's answer without waiting for the decision; on node 0 `mine` is the decision at once.
  void decline(const std::string& name, const Json& mine);

  /// This start's own entry among Members.
  [[nodiscard]] const std::string& self() const { return nonce_; }
  /// From now until leave(), who of these is started again counts as lost.
  void hold(Members members);
  void leave();
  /// Remembers that this node has finished a stage of all nodes, and tells the others.
  void noteFinished(const std::string& stage, const std::string& outcome);
  /// By node rank: how the node finished the stage, empty when it has not; nothing for one that is not there.
  std::vector<std::optional<std::string>> finishedOn(const std::string& stage);

  /// From now until endRound() nodes watch each other's ranks.
  void beginRound(const std::string& name);
  void endRound();
  /// How this node's ranks stand; passed on at once when one began to fail.
  void report(const std::vector<RankStatus>& statuses);
  /// Why the round cannot go on: the culprit that node 0 published, or that node 0 was lost; else empty.
  [[nodiscard]] std::string lost();
  /// This node's ranks as they were reported last in this round.
  [[nodiscard]] std::vector<RankReport> ownReports();

  /// Node 0: what is known of every node now.
  [[nodiscard]] std::vector<NodeReport> nodes();
  /// "node 2 (n2)", or "node 2" while its host's name is not known.
  [[nodiscard]] std::string nodeName(int rank);
  /// Node 0: what sets node `rank` apart from node 0, with both values; else empty.
  [[nodiscard]] std::string mismatch(int rank);
  /// A connection to the store for a rank of this node, which may use the keys of round `round` alone.
  Result<Fd> connectRank(const std::string& round);
  /// Where the store is.
  [[nodiscard]] StoreAddress storeAddress() const;
  /// Node 0: what the store has turned away since this was asked last; empty where that is nothing.
  [[nodiscard]] std::string turnedAway();
  [[nodiscard]] const ClusterOptions& options() const { return options_; }

 private:
  /// What node 0 knows of a node from its heartbeats.
  struct Peer {
    std::string text;      ///< the last sign
    Json sign;             ///< the same, read
    double seenAt = -1;    ///< when it last changed
    bool givenUp = false;  ///< it did not come to a question: nobody waits for its first sign any more
  };

  struct Question {
    std::string name;
    Json mine;
    double patience = 0;
    std::string stage;  ///< see agree()
  };

  explicit ClusterLink(ClusterOptions options);
  [[nodiscard]] bool leads() const { return options_.nodeRank == 0; }
  Status serve();
  Status relay();
  void pulse();
  void watch();
  void tick();
  Status claimRank();
  void noteJoined();
  Status giveSign();
  void drawOrder();
  [[nodiscard]] int64_t stillAtWork();
  void readSigns();
  bool readSign(int rank);
  void publishCulprit();
  static std::string signKey(int rank);
  [[nodiscard]] std::optional<std::string> finishedLocked(int rank, const std::string& stage) const;
  [[nodiscard]] bool startedAgain(int rank) const;
  [[nodiscard]] std::string goneLocked(int rank) const;
  void answered(const Status& status);
  void pause(double seconds);
  [[nodiscard]] std::string identityProblem(const Json& theirs, const std::string& name, bool theyLead) const;
  [[nodiscard]] bool silent(const Peer& peer, double now) const;
  [[nodiscard]] bool givenUpFor(const RunningTime::Stop& stop, double heardAt) const;
  [[nodiscard]] std::string lostLeader();
  [[nodiscard]] std::string nameLocked(int rank) const;
  [[nodiscard]] std::vector<NodeReport> nodesLocked();
  Answers gather(const Question& question, int64_t& left);
  Status publish(const std::string& name, const Json& decision, int64_t readers);
  bool worthWaiting(int rank, double since, double patience);
  Result<Json> askLeader(const Question& question);
  Result<Json> leadQuestion(const Question& question, const Decide& decide);
  [[nodiscard]] std::optional<Error> whyStopWaiting(const Question& question, double since, double openSince);
  [[nodiscard]] std::string leader();
  [[nodiscard]] bool hasFinished(int rank, const std::string& stage);
  void awaitReaders();

  ClusterOptions options_;
  RunningTime time_;  ///< all durations: those in which this node did not run count against nobody
  std::string nonce_;
  std::unique_ptr<StoreServer> server_;  ///< of node 0 the store, of others the relay of their ranks
  StoreCounts told_;                     ///< what turnedAway() has told
  std::unique_ptr<StoreClient> client_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool hurry_ = false;  ///< a rank began to fail: do not wait for the next beat
  bool joined_ = false;
  double answeredAt_ = 0;
  std::string trouble_;   ///< the last error of a call to the store
  std::string refused_;   ///< why this node cannot take part at all
  bool ended_ = false;    ///< this node has ended its run
  bool parting_ = false;  ///< the user interrupts this node, and the others were told
  Members members_;       ///< of the stage that this node is in
  double heldSince_ = 0;
  std::string round_;
  std::string stop_;  ///< the culprit that was published for the round
  double failureSeenAt_ = -1;
  RankWatch watch_;
  int64_t beats_ = 0;
  std::vector<Peer> peers_;
  std::string question_;  ///< the last one that was decided
  int64_t readers_ = 0;   ///< nodes that will read its decision

  std::thread pulseThread_;
  std::thread watchThread_;
  std::thread tickThread_;
};

}  // namespace muster
