// SPDX-License-Identifier: Apache-2.0
// Nodes of one run inside this process: real store, real connections, each node on a thread of its own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <vector>

#include "runner/cluster/cluster_stage.h"
#include "runner/rendezvous/wire/store_key.h"

namespace muster::testing {

inline const std::atomic<bool> kNotCancelled{false};

/// Nodes on free ports: node 0 tells its port to the others, as a launcher would.
class Nodes {
 public:
  explicit Nodes(int count) : count_(count) {}

  ClusterOptions options(int rank) const {
    ClusterOptions o;
    o.nodeRank = rank;
    o.nodeCount = count_;
    o.host = fmt::format("n{}", rank);
    o.store = {"127.0.0.1", port_};
    o.token = "a secret of these tests";
    o.identity = {{"plan", "aaaa"}, {"seed", "42"}};
    o.stages = {"walk"};
    o.beat = 0.05;
    o.lostAfter = 1;
    o.cancelled = &kNotCancelled;
    return o;
  }

  ClusterLink& start(ClusterOptions options) {
    auto link = ClusterLink::start(options);
    if (!link.ok()) throw std::runtime_error(link.error().text());
    links_.push_back(std::move(*link));
    if (options.nodeRank == 0) port_ = links_.back()->storeAddress().port;
    return *links_.back();
  }

  void startAll() {
    for (int rank = 0; rank < count_; ++rank) start(options(rank));
    for (const auto& link : links_) ASSERT_TRUE(link->members().join(5).ok());
  }

  /// Runs `body` for every node that was started, each on a thread.
  template <typename T>
  std::vector<T> onEach(const std::function<T(ClusterLink&)>& body) {
    std::vector<std::future<T>> running;
    for (const auto& link : links_)
      running.push_back(std::async(std::launch::async, [&body, raw = link.get()] { return body(*raw); }));
    std::vector<T> results;
    for (auto& one : running) results.push_back(one.get());
    return results;
  }

  ClusterLink& first() { return *links_.front(); }
  void lose(size_t index) { links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(index)); }

 private:
  int count_;
  uint16_t port_ = 0;
  std::vector<std::unique_ptr<ClusterLink>> links_;
};

/// A client that may do whatever a runner may.
inline std::unique_ptr<StoreClient> hostileRunner(const ClusterLink& leader) {
  StoreClientOptions client;
  client.address = leader.storeAddress();
  client.prefix = "muster/";
  client.key = storeKey(leader.options().token, client.prefix);
  return std::make_unique<StoreClient>(client);
}

/// What a node sees of a round that something cut short in run `open` of 3.
inline RoundSight cutShortIn(size_t open) {
  RoundSight sight;
  for (size_t run = 0; run <= open; ++run) sight.begun.insert(run);
  for (size_t run = 0; run < open; ++run) sight.ended.insert(run);
  return sight;
}

}  // namespace muster::testing
