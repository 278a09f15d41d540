// SPDX-License-Identifier: Apache-2.0
// Heartbeats and statuses: they tell node 0 the state of every node, and all nodes that of node 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runner/cluster/cluster_rounds.h"

namespace muster {

/// Sends this node's heartbeats and status and reads those of the others.
class ClusterHeartbeat {
 public:
  ClusterHeartbeat(ClusterNode& node, ClusterNews& news, ClusterRounds& rounds)
      : node_(node), news_(news), rounds_(rounds) {}

  /// From now on this node's status says that its run has ended.
  void endRun();
  /// Node 0: reads all heartbeats and statuses that have changed.
  void readStatuses();

  // For the thread that sends statuses:
  /// Only where it has changed.
  Status sendStatus();
  /// The host that sends heartbeats under this node's rank, too ("?": not known); none: nobody does. Takes a
  /// few heartbeats.
  Result<std::optional<std::string>> otherHost();
  /// Takes node 0's first status; kTimeout: it has not sent one.
  Status meetLeader();
  /// Takes node 0's status where it has changed, and sees whether node 0 was started again.
  void followLeader();

  /// The thread of a node other than node 0 that sends heartbeats, and gets news for them.
  void beat();

 private:
  [[nodiscard]] std::string ownStatus();
  Result<std::string> lastBeat();
  [[nodiscard]] std::string leaderNews();
  void takeLeader(const std::string& text, std::optional<NodeStatus> status);

  ClusterNode& node_;
  ClusterNews& news_;
  ClusterRounds& rounds_;

  // Only used by the thread that sends statuses:
  std::string given_;       ///< this node's status as node 0 has it; empty: not known
  std::string leaderText_;  ///< node 0's status

  // The node's mutex guards all below.
  bool ended_ = false;                         ///< see endRun()
  bool reading_ = false;                       ///< one thread at a time reads statuses
  uint64_t beatsSeen_ = 0, statusesSeen_ = 0;  ///< versions of the store
};

}  // namespace muster
