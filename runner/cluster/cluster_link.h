// SPDX-License-Identifier: Apache-2.0
// The tie between the nodes of one run: node 0's store, and what the nodes do through it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runner/cluster/cluster_membership.h"
#include "runner/rendezvous/store_server.h"

namespace muster {

/// One node's end of the tie. Node 0 serves the store and decides. Methods, of the parts too, are for the
/// thread that runs stages; beside it one thread sends statuses (and reads them, on node 0), one sends the
/// heartbeats of another node and gets news for them, and one looks at the clock.
class ClusterLink {
 public:
  /// On node 0 an Error is a store that cannot be served. Elsewhere node 0 may still be ahead.
  static Result<std::unique_ptr<ClusterLink>> start(ClusterOptions options);
  /// Node 0 gives the others a moment to read its last decision before the store goes.
  ~ClusterLink();
  ClusterLink(const ClusterLink&) = delete;
  ClusterLink& operator=(const ClusterLink&) = delete;

  [[nodiscard]] const ClusterOptions& options() const { return node_.options; }
  [[nodiscard]] ClusterMembership& members() { return members_; }
  [[nodiscard]] ClusterAgreement& agreement() { return agreement_; }
  [[nodiscard]] ClusterRounds& rounds() { return rounds_; }

  /// A connection to the store for a rank of this node, which may use the keys of round `round` alone.
  Result<Fd> connectRank(const std::string& round);
  /// Node 0: forgets the keys of a round that all its ranks have left.
  void clearRound(const std::string& name);
  /// Where the store is.
  [[nodiscard]] StoreAddress storeAddress() const;
  /// Node 0: what the store has turned away since this was asked last; empty where that is nothing.
  [[nodiscard]] std::string turnedAway();

 private:
  ClusterLink(ClusterOptions options, std::string nonce) : node_(std::move(options), std::move(nonce)) {}
  Status serve();
  Status relay();
  void pulse();
  void tick();

  std::unique_ptr<StoreServer> server_;  ///< of node 0 the store, of others the relay of their ranks
  StoreCounts told_;                     ///< what turnedAway() has told
  // Each knows those before it:
  ClusterNode node_;
  ClusterNews news_{node_};
  ClusterRounds rounds_{node_, news_};
  ClusterHeartbeat heartbeat_{node_, news_, rounds_};
  ClusterAgreement agreement_{node_, news_, rounds_, heartbeat_};
  ClusterMembership members_{node_, heartbeat_, agreement_};
};

}  // namespace muster
