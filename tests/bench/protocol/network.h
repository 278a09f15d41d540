// SPDX-License-Identifier: Apache-2.0
// Node 0 and the way to it: delays, bandwidth, losses and the time that its store's thread takes; and the
// product's store, relays and clients on top of that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runner/rendezvous/store_askers.h"
#include "runner/rendezvous/store_calls.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/store_uplink.h"
#include "runner/rendezvous/store_world.h"
#include "tests/bench/protocol/fibers.h"

namespace muster::bench {

struct NetworkOptions {
  double roundTrip = 1e-3;     ///< seconds between a node and node 0
  double bandwidth = 1e9;      ///< bits per second at node 0, each way
  double loss = 0;             ///< share of messages that are sent again, after 0.2 s and more
  double requestCost = 10e-6;  ///< seconds of node 0's store thread for one request
  double answerCost = 10e-6;   ///< for one answer; many at once are sent by several threads
  double proofCost = 100e-6;   ///< and for one TLS handshake
};

class SimServer;

/// Everything that goes between the nodes. Node 0's store has one thread and one network interface.
class Network {
 public:
  Network(Fibers& fibers, const NetworkOptions& options, uint64_t seed)
      : options_(options), fibers_(fibers), random_(seed) {}

  /// One connection of a node to node 0's store.
  struct Connection {
    StorePeerId id = 0;
    int node = 0;
    bool up = false;                    ///< not closed
    double readyAt = 0;                 ///< when the handshake is done
    double toServer = 0, toClient = 0;  ///< when the last message arrives
    std::function<void(StoreResponse)> onAnswer;
    std::function<void()> onLost;
  };

  void serve(SimServer* store) { store_ = store; }
  /// Node 0 ends its run in order: all connections are closed.
  void endStore();
  [[nodiscard]] bool reachable() const { return store_ != nullptr && fibers_.alive(0); }
  std::shared_ptr<Connection> connect(int node);
  void send(const std::shared_ptr<Connection>& connection, const StoreRequest& request);
  /// `cost`: seconds of node 0's store before it is sent.
  void answer(StorePeerId connection, const StoreReply& reply, uint32_t id, double cost);
  void close(const std::shared_ptr<Connection>& connection);
  /// The node ends: its processes at once, or the host, which then says nothing more to anybody.
  void kill(int node, bool host);
  /// Time of the store's thread for `cost` seconds of work that comes at `when`.
  double work(double when, double cost);

  [[nodiscard]] Fibers& fibers() { return fibers_; }
  [[nodiscard]] const NetworkOptions& options() const { return options_; }
  uint64_t requests = 0;  ///< that node 0's store was asked
  uint64_t bytesIn = 0, bytesOut = 0;

 private:
  [[nodiscard]] double wireBytes(size_t size) const;
  double delay();
  void endOnServer(StorePeerId connection);
  void endOnClient(const std::shared_ptr<Connection>& connection);

  NetworkOptions options_;
  Fibers& fibers_;
  std::mt19937_64 random_;
  SimServer* store_ = nullptr;
  StorePeerId next_ = 1;
  std::map<StorePeerId, std::shared_ptr<Connection>> connections_;
  double received_ = 0, sent_ = 0, worked_ = 0;  ///< when interface and thread are free again
};

/// A node's server: the product's desk and its book of askers, without sockets.
class SimServer : public StoreServer {
 public:
  SimServer(Network& network, int node, std::unique_ptr<StoreDesk> desk)
      : network_(network), node_(node), desk_(std::move(desk)), askers_(*desk_) {}

  ~SimServer() override {
    if (node_ == 0) network_.endStore();
  }
  SimServer(const SimServer&) = delete;
  SimServer& operator=(const SimServer&) = delete;

  /// Bytes of a request of another node, with its length.
  void take(StorePeerId connection, const std::string& bytes);
  /// A request of this node itself.
  void takeLocal(StorePeerId connection, StoreRequest request);
  void close(StorePeerId connection);
  void proceed();
  StorePeerId attach(const std::string& prefix, std::function<void(StoreResponse)> onAnswer);
  void detach(StorePeerId connection, const std::string& prefix);
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] int node() const { return node_; }
  [[nodiscard]] std::weak_ptr<bool> lives() const { return lives_; }

  Result<Fd> connect(const std::string& prefix) override;
  [[nodiscard]] uint16_t port() const override { return 1; }
  [[nodiscard]] const std::string& host() const override { return host_; }
  [[nodiscard]] StoreCounts counts() const override { return {}; }

 private:
  void pass(std::vector<StoreAskers::Answer> answers);

  static constexpr StorePeerId kLocal = StorePeerId{1} << 40;
  Network& network_;
  int node_;
  std::unique_ptr<StoreDesk> desk_;
  StoreAskers askers_;
  std::string host_ = "n0";
  StorePeerId next_ = kLocal;
  std::map<StorePeerId, std::function<void(StoreResponse)>> locals_;
  double deadline_ = kForever;
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);  ///< of which timers have a weak one
};

/// What one node stands on.
class SimWorld : public StoreWorld {
 public:
  SimWorld(Network& network, int node) : network_(network), node_(node) {}

  Result<std::unique_ptr<StoreServer>> serve(const StoreServerOptions& options) override;
  Result<std::unique_ptr<StoreServer>> relay(StoreRelayOptions options) override;
  std::unique_ptr<StoreClient> client(StoreClientOptions options) override;
  Result<std::unique_ptr<StoreClient>> client(StoreServer& server, const std::string& prefix,
                                              StoreClientOptions options) override;
  std::unique_ptr<Tasks> tasks() override;
  /// The server that this node has started.
  [[nodiscard]] SimServer* server() const { return server_; }

  /// Wakes all calls that wait, for those that were cancelled.
  void lookAgain();
  std::vector<class SimCalls*> calls;

 private:
  Network& network_;
  int node_;
  SimServer* server_ = nullptr;
};

}  // namespace muster::bench
