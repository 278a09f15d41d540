// SPDX-License-Identifier: Apache-2.0
// The tie between the nodes of one run: node 0's store, heartbeats, agreements, and who was lost.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/cluster/cluster_evidence.h"
#include "runner/cluster/cluster_peers.h"
#include "runner/cluster/running_time.h"
#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/core/tasks.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/store_server.h"

namespace muster {

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

  /// Of a run that is resumed: waits for up to `patience` seconds until node 0 has seen all nodes, so that
  /// each knows what the others have finished, whoever ends first.
  void rollCall(double patience);

  /// Waits until all nodes that are alive have ended their runs, too; for launchers that end all nodes once
  /// the first one leaves with a bad exit code.
  void leaveTogether();

  /// Answers of all nodes to one question, by node rank: nothing where a node did not answer.
  using Answers = std::vector<std::optional<Json>>;
  using Decide = std::function<Json(const Answers&)>;
  /// Asks all nodes the question `name` (no name is used twice): each gives `mine`, node 0 decides once all
  /// have answered, those who have not are lost, or `patience` seconds have passed; all get what it decided.
  /// Where that has "parts", one for each node rank, each node gets only its own, as "part". kTimeout: node 0
  /// did not come to the question. kIo: node 0 was lost. kUsage: as join(). `stage`: where the question is
  /// whether to enter that stage; nodes that have finished it are not waited for, and where node 0 has, the
  /// answer is {"finished": true}.
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
  /// Which nodes have finished the stage and which have not: "it is on ..., and not on ...", as far as node 0
  /// knows; empty where nobody has.
  std::string finishedWhere(const std::string& stage);

  /// From now until endRound() nodes watch each other's ranks.
  void beginRound(const std::string& name);
  void endRound();
  /// Node 0: forgets the keys of a round that all its ranks have left.
  void clearRound(const std::string& name);
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
  void beat();
  void tick();
  Result<std::string> lastBeat();
  Status claimRank();
  void noteJoined();
  [[nodiscard]] std::string ownStatus();
  Status sendStatus();
  void drawOrder();
  void readStatuses();
  void takeLeader();
  void takeNews(const std::string& text);
  void publishNews();
  [[nodiscard]] std::string published() const;
  void publishFinished();
  void readFinished();
  void publishCulprit();
  static std::string statusKey(int rank);
  static std::string beatKey(int rank);
  void answered(const Status& status);
  void pause(double seconds);
  [[nodiscard]] std::string lostLeader();
  void takeAnswers(const Question& question, uint64_t& since, std::set<int>& open, Answers& answers,
                   int64_t& left);
  Answers gather(const Question& question, int64_t& left);
  Status publish(const std::string& name, Json decision, int64_t readers);
  Result<std::string> awaitDecision(const std::string& name, double seconds, std::string& checked);
  Result<Json> readDecision(const std::string& topic, const std::string& text);
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

  // Only used by the thread that sends heartbeats:
  int64_t beats_ = 0;       ///< of node 0
  std::string given_;       ///< this node's status as node 0's store has it; empty: not known
  std::string leaderText_;  ///< node 0's status

  std::mutex mutex_;                           // guards all below
  bool reading_ = false;                       ///< one thread at a time reads statuses
  uint64_t beatsSeen_ = 0, statusesSeen_ = 0;  ///< versions of the store
  bool stopping_ = false;
  bool hurry_ = false;    ///< a rank began to fail: do not wait for the next beat
  bool claimed_ = false;  ///< no other host has this node's rank
  bool joined_ = false;
  double answeredAt_ = 0;
  std::string trouble_;   ///< the last error of a call to the store
  std::string refused_;   ///< why this node cannot take part at all
  bool ended_ = false;    ///< this node has ended its run
  bool parting_ = false;  ///< the user interrupts this node, and the others were told
  std::string round_;
  double failureSeenAt_ = -1;
  RankWatch watch_;
  ClusterPeers peers_;
  bool statusesNew_ = true;  ///< since node 0 published what they say
  /// What node 0 published last about the others.
  struct Finished {
    std::string text;
    int seen = 0;                               ///< nodes that have sent a status
    std::map<std::string, std::string> stages;  ///< see finishedWhere()
  } finished_;
  /// What node 0 tells all others, who get it with the answers to their heartbeats.
  struct News {
    std::string status;          ///< node 0's
    std::string round, culprit;  ///< why that round cannot go on
    std::string open;            ///< the question that node 0 opened last
    std::string decided;         ///< and the one that it decided last
    std::string decision;        ///< empty: it is too long
  } news_;
  bool telling_ = false;  ///< one thread at a time publishes news
  std::string newsTold_;
  int64_t claims_ = 0;    ///< starts under this rank, with ours, when it asked; 0: it has not
  std::string lastRead_;  ///< the question whose decision this node has read last
  std::string question_;  ///< the last one that was decided
  int64_t readers_ = 0;   ///< nodes that will read its decision

  std::unique_ptr<Tasks> tasks_;  // last: they use all of the above
};

}  // namespace muster
