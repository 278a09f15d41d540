// SPDX-License-Identifier: Apache-2.0
// Rounds, in which nodes watch each other's ranks: how they stand, and why a round cannot go on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/cluster/cluster_evidence.h"
#include "runner/cluster/cluster_news.h"

namespace muster {

/// The round that this node is in: one start of a cluster stage's ranks.
class ClusterRounds {
 public:
  ClusterRounds(ClusterNode& node, ClusterNews& news) : node_(node), news_(news) {}

  /// From now until end() nodes watch each other's ranks.
  void begin(const std::string& name);
  void end();
  /// How this node's ranks stand; passed on at once when one began to fail.
  void report(const std::vector<RankStatus>& statuses);
  /// Why the round cannot go on: the culprit that node 0 published, or that node 0 was lost; else empty.
  [[nodiscard]] Culprit lost();
  /// This node's ranks as they were reported last in this round.
  [[nodiscard]] std::vector<RankReport> ownReports();
  /// Node 0: what is known of every node now.
  [[nodiscard]] std::vector<NodeReport> nodes();

  /// Node 0: where its store had no room for what ranks wrote in this round, or two spoke in the name of one,
  /// that is at fault for all that came of it; else empty.
  [[nodiscard]] Culprit misuse() const;

  /// The store's counter puts the failures of all nodes into one order, whatever their clocks say.
  void drawOrder();
  /// Node 0: puts into the news who is lost as soon as it is known: nobody waits for it.
  void noteCulprit();

  // With the node's mutex held:
  void addFailures(NodeStatus& status) const;
  /// Node 0: removes the culprit from the news, once all have left that round.
  void forgetCulprit();

 private:
  [[nodiscard]] Culprit published() const;

  ClusterNode& node_;
  ClusterNews& news_;
  // The node's mutex guards all below.
  std::string round_;  ///< empty: none
  double failureSeenAt_ = -1;
  StoreCounts before_;  ///< when the round began
  RankWatch watch_;
  bool parting_ = false;  ///< the user interrupts this node, and the others were told
};

}  // namespace muster
