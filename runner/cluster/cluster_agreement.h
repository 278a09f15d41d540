// SPDX-License-Identifier: Apache-2.0
// How all nodes come to one decision, which node 0 makes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runner/cluster/cluster_heartbeat.h"
#include "runner/core/json.h"

namespace muster {

/// Questions to all nodes, one after the other. Methods are for the thread that runs stages.
class ClusterAgreement {
 public:
  ClusterAgreement(ClusterNode& node, ClusterNews& news, ClusterRounds& rounds, ClusterHeartbeat& heartbeat)
      : node_(node), news_(news), rounds_(rounds), heartbeat_(heartbeat) {}

  /// Answers of all nodes to one question, by node rank: nothing where a node did not answer.
  using Answers = std::vector<std::optional<Json>>;
  using Decide = std::function<Json(const Answers&)>;
  /// In an answer: which start of its node gives it (ClusterMembership::self()); of another one it does not
  /// count.
  static constexpr const char* kStart = "start";
  /// Asks all nodes the question `name` (no name is used twice): each gives `mine`, node 0 decides once all
  /// have answered, those who have not are lost, or `patience` seconds have passed; all get what it decided.
  /// Where that has "parts", one for each node rank, each node gets only its own, as "part". kTimeout: node 0
  /// did not come to the question; if this node has never met it, it waits that long only once. kIo: node 0
  /// was lost. kUsage: as ClusterMembership::join(). `stage`: where the question is whether to enter that
  /// stage; nodes that have finished it, or do not take part, are not waited for, and where node 0 has, the
  /// answer is {"finished": true} or {"skip": WHY}. `onWait`: called a few times a second meanwhile.
  Result<Json> ask(
      const std::string& name, const Json& mine, double patience, const Decide& decide,
      const std::string& stage = "", const std::function<void()>& onWait = [] {});
  /// Gives this node's answer without waiting for the decision; on node 0 `mine` is the decision at once.
  void decline(const std::string& name, const Json& mine);

  /// Node 0: so many nodes will read its last decision, which is on `name`, and note that they have.
  void expectReaders(const std::string& name, int64_t readers);
  void noteRead(const std::string& name);
  /// Node 0: gives them a moment, before the store goes.
  void awaitReaders();

 private:
  struct Question {
    std::string name;
    Json mine;
    double patience = 0;
    std::string stage;             ///< see ask()
    std::function<void()> onWait;  ///< see ask()
  };

  void takeAnswers(const Question& question, uint64_t& since, std::set<int>& open, Answers& answers,
                   std::set<int>& left);
  void dropStale(std::set<int>& open, Answers& answers, std::set<int>& stale);
  Answers gather(const Question& question, std::set<int>& left);
  Status publish(const std::string& name, Json decision, int64_t readers);
  Result<std::string> awaitDecision(const std::string& name, double seconds, std::string& checked);
  Result<Json> readDecision(const std::string& name, const std::string& text);
  bool worthWaiting(int rank, double since, double patience);
  Result<Json> askLeader(const Question& question);
  Result<Json> leadQuestion(const Question& question, const Decide& decide);
  [[nodiscard]] std::optional<Error> whyStopWaiting(const Question& question, double since, double openSince);
  [[nodiscard]] bool hasFinished(int rank, const std::string& stage);
  [[nodiscard]] std::optional<Json> answerOfLeader(const std::string& stage);

  ClusterNode& node_;
  ClusterNews& news_;
  ClusterRounds& rounds_;
  ClusterHeartbeat& heartbeat_;
  std::string lastRead_;       ///< the question whose decision this node has read last
  std::string decided_;        ///< the one that node 0 has decided last
  int64_t readers_ = 0;        ///< nodes that will read its decision
  bool waitedInVain_ = false;  ///< for a node 0 that this node has not met yet
};

}  // namespace muster
