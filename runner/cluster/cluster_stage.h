// SPDX-License-Identifier: Apache-2.0
// A cluster-scope stage as one of its nodes sees it: all nodes enter it together, and agree on how it went.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runner/cluster/cluster_link.h"

namespace muster {

/// A node of the run as node 0 knows it.
struct NodeAround {
  int nodeRank = 0;
  std::string node;  ///< the name that its own record has
  int firstRank = 0;
  int ranks = 0;  ///< none: it is idle
};
Json toJson(const std::vector<NodeAround>& around);

/// Whether a stage is finished: each node may decide for itself, or all have agreed that it is open, since a
/// user interrupted the run on a node and nothing else failed, or that it is finished.
enum class StageEnding { kOwn, kOpen, kFinished };

/// What a node may do in a stage that all nodes have come to.
struct ClusterEntry {
  enum class Kind { kGo, kSkip, kError } kind = Kind::kError;
  std::string why;                   ///< of a skip or an error; the same on all nodes that node 0 could tell
  int firstRank = 0;                 ///< the group's rank of this node's local rank 0
  int worldSize = 1;                 ///< ranks of all nodes
  std::string id{};                  ///< of those who met: the same on all of them, and of no other group
  std::vector<NodeAround> around{};  ///< this node and those around it, whose names node 0 knows
};

/// What this node saw of one round: one start of the stage's ranks.
struct RoundSight {
  bool late = false;         ///< the deadline ended it
  bool interrupted = false;  ///< the user did
  std::string lost;          ///< this node lost node 0
  std::set<size_t> begun;    ///< runs that any of its ranks began
  std::set<size_t> ended;    ///< runs that all of its ranks ended
  bool clean = true;         ///< all of its ranks' processes ended well
  std::set<size_t> hurt;     ///< runs that failed on one of its ranks because of another rank
};

/// What node 0 made of it.
struct RoundVerdict {
  std::string culprit;     ///< empty: nobody is at fault
  std::set<size_t> ranks;  ///< that are at fault themselves
  /// Runs that count as errors on every rank of the group; none: all ran to their end.
  std::set<size_t> failed;
  bool again = false;  ///< what is neither ended nor failed is started again, on all nodes
};

/// What all answers of one round come to, before anybody is named.
struct RoundResult {
  bool passed = false;      ///< every member reported every run, and all of its ranks ended well
  std::set<size_t> failed;  ///< never empty unless it passed
  bool again = false;
};

/// `answers`: a sight as JSON for each node, nothing for one that was lost. Pure.
RoundResult roundResult(const ClusterAgreement::Answers& answers, size_t runs);

/// Meets the other nodes at fixed points. Every answer comes within a deadline.
class ClusterStage {
 public:
  /// `arrival`: seconds to wait for the other nodes at the start.
  ClusterStage(ClusterLink& link, std::string stage, double arrival)
      : link_(link), stage_(std::move(stage)), arrival_(arrival) {}

  /// Waits for all nodes; `localSize` is the number of this node's ranks.
  ClusterEntry enter(int localSize);
  /// Tells the other nodes that this one does not take part.
  void decline(const std::string& why);

  void beginRound(int attempt, int start);
  /// `runs`: how many runs the stage's attempt has; `timeLeft`: seconds until the stage's deadline, which the
  /// ranks of other nodes may use up. Never fails: what went wrong is in the verdict. `onWait`: called a few
  /// times a second while the ranks of others run and nobody is known who would have ended those of this
  /// node.
  RoundVerdict endRound(
      const RoundSight& sight, size_t runs, double timeLeft, const std::function<void()>& onWait = [] {});
  /// The cases that any node asks to try again, or an error when that could not be agreed. None once a node
  /// was lost or a component was found faulty (`faulty`, empty: none): such a stage cannot pass any more.
  Result<std::set<std::string>> retries(int attempt, const std::set<std::string>& mine,
                                        const std::string& faulty);
  /// What a stage tries, as all its nodes know it beforehand.
  struct Course {
    int attempts = 1;
    int repeat = 1;
    size_t cases = 1;
    double timeout = 0;  ///< seconds, of one attempt
  };
  /// Of a node without ranks in the group, after enter(0): answers what its nodes ask each other, until all
  /// leave. Returns whom they found faulty; empty: nobody.
  std::string attend(const Course& course);
  /// Waits until all members have done their part of the stage. Returns `faulty`, or what another node found,
  /// or whom this question lost; empty: all have left in good order.
  std::string leave(const std::string& faulty);

  /// A connection to the store for a rank of the open round.
  Result<Fd> connectStore() { return link_.connectRank(round_); }
  [[nodiscard]] ClusterRounds& rounds() { return link_.rounds(); }
  /// Of a stage that was not entered, after its last round, and after it was left.
  [[nodiscard]] StageEnding ending() const { return ending_; }

 private:
  [[nodiscard]] std::string disagreement();
  [[nodiscard]] std::string oddNodes(size_t nodes);
  [[nodiscard]] Json decideEntry(const ClusterAgreement::Answers& answers, Members& members);
  [[nodiscard]] Json decideRound(const ClusterAgreement::Answers& answers, size_t runs);
  [[nodiscard]] std::vector<NodeReport> sightsOfNodes(const ClusterAgreement::Answers& answers);
  [[nodiscard]] Culprit culpritOf(const ClusterAgreement::Answers& answers, size_t runs);

  ClusterLink& link_;
  std::string stage_;
  double arrival_;
  std::string round_;
  StageEnding ending_ = StageEnding::kOwn;
};

}  // namespace muster
