// SPDX-License-Identifier: Apache-2.0
// What node 0 tells all others, who get it with the answers to their heartbeats.
#pragma once

#include <string>

#include "runner/cluster/cluster_node.h"

namespace muster {

class ClusterNews {
 public:
  static std::string key() { return leaderKey("news"); }
  struct News {
    std::string status;    ///< node 0's
    std::string round;     ///< that cannot go on,
    Culprit culprit;       ///< and because of whom
    std::string open;      ///< the question that node 0 opened last
    std::string decided;   ///< and the one that it decided last
    std::string decision;  ///< empty: it is too long
  };

  explicit ClusterNews(ClusterNode& node) : node_(node) {}

  /// The last news, of node 0 also those that are not published yet. With the node's mutex held.
  [[nodiscard]] News& last() { return last_; }
  /// Node 0: tells the others what has changed.
  void publish();
  /// What node 0 has told.
  void take(const std::string& text);

 private:
  ClusterNode& node_;
  // The node's mutex guards all below.
  News last_;
  bool telling_ = false;  ///< one thread at a time publishes
  std::string told_;
};

}  // namespace muster
