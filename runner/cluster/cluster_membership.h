// SPDX-License-Identifier: Apache-2.0
// Who takes part in a run, and which of its stages each node has finished.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runner/cluster/cluster_agreement.h"

namespace muster {

/// This node's place among the nodes of the run, from its claim to its end.
class ClusterMembership {
 public:
  ClusterMembership(ClusterNode& node, ClusterHeartbeat& heartbeat, ClusterAgreement& agreement)
      : node_(node), heartbeat_(heartbeat), agreement_(agreement) {}

  /// Waits for up to `patience` seconds for node 0; kUsage when this node runs something else than node 0
  /// (names what, and both values) or when another host already has its rank. That node 0 is not there yet is
  /// no error.
  Status join(double patience);
  /// Of a run that is resumed: waits for up to `patience` seconds until node 0 has seen all nodes, so that
  /// each knows what the others have finished, whoever ends first.
  void rollCall(double patience);
  /// Waits until all nodes that are alive have ended their runs, too; for launchers that end all nodes once
  /// the first one leaves with a bad exit code. A node can take `patience` seconds for its own run; one that
  /// takes longer is not waited for, and false is returned.
  bool leaveTogether(double patience);

  /// This start's own entry among Members.
  [[nodiscard]] const std::string& self() const { return node_.nonce; }
  /// From now until release(), who of these is started again counts as lost.
  void hold(Members members);
  void release();
  /// "node 2 (n2)", or "node 2" while its host's name is not known.
  [[nodiscard]] std::string nameOf(int rank);
  /// Node 0: what sets node `rank` apart from node 0, with both values; else empty.
  [[nodiscard]] std::string mismatch(int rank);

  /// Remembers that this node has finished a stage of all nodes, and tells the others.
  void noteFinished(const std::string& stage, const std::string& outcome);
  /// Remembers that this node does not take part in a stage of all nodes, and tells the others.
  void noteDeclined(const std::string& stage, const std::string& why);
  /// "node 2 (n2) does not take part: WHY", of another node; empty where it has not said so.
  std::string whyDeclined(int rank, const std::string& stage);
  /// Whether another node says that its user or scheduler ended its run.
  bool wasInterrupted(int rank);
  /// Which nodes have finished the stage and which have not: "it is on ..., and not on ...", as far as node 0
  /// knows; empty where nobody has.
  std::string finishedWhere(const std::string& stage);

  // For the thread that sends statuses:
  /// Makes sure that no other host reports under this rank, and that node 0 runs the same.
  Status claim();
  /// After the claim and the first status: that one comes before it is known whether this node may join.
  void noteJoined();
  /// Node 0: reads all statuses and publishes a summary of the finished stages.
  void publishFinished();

 private:
  /// What node 0 published last about the others.
  struct Finished {
    std::string text;
    int seen = 0;                               ///< nodes that have sent a status
    std::map<std::string, std::string> stages;  ///< see finishedWhere()
  };
  void readFinished();

  ClusterNode& node_;
  ClusterHeartbeat& heartbeat_;
  ClusterAgreement& agreement_;
  int64_t claims_ = 0;  ///< starts under this rank, with ours, when it asked; 0: it has not
  // The node's mutex guards all below.
  Finished finished_;
  uint64_t summarized_ = 0;  ///< ClusterPeers::changes() as node 0 has published it; 0: it has to
};

}  // namespace muster
