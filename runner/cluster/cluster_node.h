// SPDX-License-Identifier: Apache-2.0
// What the parts of a ClusterLink share: a node's clock, its connection to node 0's store, and its peers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runner/cluster/cluster_peers.h"
#include "runner/cluster/running_time.h"
#include "runner/core/result.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/store_server.h"
#include "runner/system/tasks.h"

namespace muster {

/// The client's key of what node 0 alone may write.
inline std::string leaderKey(const std::string& name) {
  return std::string(kLeaderKeys.substr(std::string_view(kRunnerKeys).size())) + name;
}

/// The rank in "12", the end of a node's key, of so many; -1: it is none of another node than 0.
int rankOfKey(std::string_view key, int count);

/// This node among the others. Its one mutex also guards what the parts keep themselves, where they say so:
/// all threads wait for the same kind of news (Tasks), and most decisions rest on the data of several parts.
/// Nobody holds it during a call to the store.
struct ClusterNode {
  ClusterNode(ClusterOptions given, std::string start);

  [[nodiscard]] bool leads() const { return options.nodeRank == 0; }
  /// Notes how a call to node 0's store ended.
  void answered(const Status& status);
  /// Returns early where there is something to do at once.
  void pause(double seconds);
  /// Which start of node 0 is there, as far as this node knows.
  [[nodiscard]] std::string leader();
  /// With the mutex held: how this node lost node 0; empty: it did not.
  [[nodiscard]] std::string lostLeader();

  const ClusterOptions options;
  const std::string nonce;  ///< what this start of the node drew
  const std::unique_ptr<Tasks> tasks;
  RunningTime time;  ///< all durations: those in which this node did not run count against nobody
  std::unique_ptr<StoreClient> client;  ///< there before the first task
  /// Node 0: what its store has had to refuse.
  std::function<StoreCounts()> storeCounts = [] { return StoreCounts(); };

  std::mutex mutex;  // guards all below
  bool stopping = false;
  bool hurry = false;   ///< a rank began to fail: do not wait for the next heartbeat
  bool joined = false;  ///< no other host has this node's rank, and node 0 has its status
  double answeredAt;
  std::string trouble;  ///< the last error of a call to the store
  std::string refused;  ///< why this node cannot take part at all
  ClusterPeers peers;
};

}  // namespace muster
