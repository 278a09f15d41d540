// SPDX-License-Identifier: Apache-2.0
// A node's store or relay, and its threads. See cluster_link.h.
#include "runner/cluster/cluster_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/rendezvous/wire/store_key.h"
#include "runner/system/secret.h"

namespace muster {
namespace {

constexpr double kConnectTimeout = 1;  // of one try; threads try again and again

}  // namespace

Result<std::unique_ptr<ClusterLink>> ClusterLink::start(ClusterOptions given) {
  MUSTER_TRY(std::string nonce, randomSecret());
  std::unique_ptr<ClusterLink> link(new ClusterLink(std::move(given), std::move(nonce)));
  ClusterNode& node = link->node_;
  const ClusterOptions& options = node.options;
  MUSTER_CHECK_OK(node.leads() ? link->serve() : link->relay());
  StoreClientOptions client;
  client.who = fmt::format("node {} ({})", options.nodeRank, options.host);
  client.connectTimeout = kConnectTimeout;
  client.answerTimeout = std::max(1.0, options.lostAfter / 2);
  client.cancelled = [&node] {
    const std::lock_guard lock(node.mutex);
    return node.stopping;
  };
  if (node.leads()) {
    MUSTER_TRY(node.client, options.world->client(*link->server_, kRunnerKeys, client));
    node.storeCounts = [server = link->server_.get()] { return server->counts(); };
  } else {
    client.address = options.store;
    client.prefix = kRunnerKeys;
    client.key = storeKey(options.token, client.prefix);
    node.client = options.world->client(client);
  }
  node.tasks->start([raw = link.get()] { raw->pulse(); });
  if (!node.leads()) node.tasks->start([raw = link.get()] { raw->heartbeat_.beat(); });
  node.tasks->start([raw = link.get()] { raw->tick(); });
  return link;
}

Status ClusterLink::serve() {
  StoreServerOptions server;
  server.bind = options().store.host;
  server.port = options().store.port;
  server.token = options().token;
  server.limits = StoreLimits::forNodes(static_cast<size_t>(options().nodeCount));
  auto started = options().world->serve(server);
  if (!started.ok() && started.error().code == ErrorCode::kNotFound && !server.token.empty()) {
    server.bind = "";  // a name that only the other nodes know
    started = options().world->serve(server);
  }
  if (!started.ok()) return std::move(started).error().context("serving the store of node 0");
  server_ = std::move(*started);
  return {};
}

Status ClusterLink::relay() {
  StoreRelayOptions relay;
  relay.address = options().store;
  relay.prefix = kRankKeys;
  relay.key = storeKey(options().token, relay.prefix);
  relay.who = fmt::format("node {} ({})", options().nodeRank, options().host);
  MUSTER_TRY(server_, options().world->relay(std::move(relay)));
  return {};
}

ClusterLink::~ClusterLink() {
  if (node_.leads() && node_.client != nullptr) agreement_.awaitReaders();
  {
    const std::lock_guard lock(node_.mutex);
    node_.stopping = true;
  }
  node_.tasks->notify();
  node_.tasks->join();
}

void ClusterLink::pulse() {
  bool claimed = false;
  while (true) {
    {
      const std::lock_guard lock(node_.mutex);
      if (node_.stopping || !node_.refused.empty()) return;
      node_.hurry = false;
    }
    if (!claimed) {
      const Status status = members_.claim();
      node_.answered(status);
      claimed = status.ok();
      if (claimed) continue;  // if it was refused, it says nothing more under a rank that another node has
    }
    if (claimed) {
      rounds_.drawOrder();
      if (heartbeat_.sendStatus().ok()) members_.noteJoined();
      if (node_.leads()) {
        members_.publishFinished();
        rounds_.noteCulprit();
        news_.publish();
      } else {
        heartbeat_.followLeader();
      }
    }
    node_.pause(options().beat);
  }
}

/// Calls of the other threads may wait for an answer for seconds.
void ClusterLink::tick() {
  std::unique_lock lock(node_.mutex);
  while (!node_.stopping) {
    (void)node_.time.now();
    node_.tasks->wait(lock, options().beat);
  }
}

Result<Fd> ClusterLink::connectRank(const std::string& round) {
  return server_->connect((node_.leads() ? kRankKeys : "") + round + "/");
}

void ClusterLink::clearRound(const std::string& name) {
  if (!node_.leads()) return;
  if (auto ranks = options().world->client(*server_, kRankKeys, {}); ranks.ok())
    (void)(*ranks)->clear(name + "/").ok();
  (void)node_.client->clear("order/" + name).ok();
}

StoreAddress ClusterLink::storeAddress() const {
  return node_.leads() ? StoreAddress{server_->host(), server_->port()} : options().store;
}

std::string ClusterLink::turnedAway() {
  if (!node_.leads()) return "";
  const StoreCounts now = server_->counts();
  return muster::turnedAway(now, std::exchange(told_, now));
}

}  // namespace muster
