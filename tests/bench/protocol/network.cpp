// SPDX-License-Identifier: Apache-2.0
// Messages on their way: delay, node 0's bandwidth, losses and repeats.
#include "tests/bench/protocol/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "runner/rendezvous/store_loop.h"
#include "runner/rendezvous/store_relay.h"
#include "runner/rendezvous/store_state.h"

namespace muster::bench {
namespace {

constexpr double kSegment = 1448, kSegmentHead = 78;  // bytes of TCP: payload; Ethernet, IP and TCP around it
constexpr double kRecord = 16384, kRecordHead = 22;   // and of TLS
constexpr double kHandshake = 700;                    // bytes each way
constexpr double kResend = 0.2;                       // seconds after which TCP sends again, first
constexpr double kRetryPause = 0.05;
constexpr size_t kCpusOfNodeZero = 4;  // or more

std::string textOf(const StoreReply& reply) {
  return reply.value ? reply.value->text() : reply.text;
}

}  // namespace

double Network::wireBytes(size_t size) const {
  const auto payload = static_cast<double>(size);
  const double records = std::ceil(payload / kRecord), bytes = payload + records * kRecordHead;
  return bytes + std::ceil(bytes / kSegment) * kSegmentHead;
}

/// One way, with what is lost.
double Network::delay() {
  double seconds = options_.roundTrip / 2;
  std::uniform_real_distribution<double> draw(0, 1);
  for (double wait = kResend; options_.loss > 0 && draw(random_) < options_.loss; wait *= 2) seconds += wait;
  return seconds;
}

double Network::work(double when, double cost) {
  return worked_ = std::max(worked_, when) + cost;
}

std::shared_ptr<Network::Connection> Network::connect(int node) {
  auto connection = std::make_shared<Connection>();
  connection->id = next_++;
  connection->node = node;
  connection->up = true;
  // TCP's own round trip, then TLS's, whose proof the store's thread has to check.
  received_ = std::max(received_, fibers_.now()) + kHandshake * 8 / options_.bandwidth;
  const double proven =
      work(std::max(received_, fibers_.now() + 1.5 * options_.roundTrip), options_.proofCost);
  connection->readyAt = proven + delay();
  connection->toServer = connection->readyAt;
  connections_[connection->id] = connection;
  return connection;
}

void Network::send(const std::shared_ptr<Connection>& connection, const StoreRequest& request) {
  std::string bytes = encodeStoreRequest(request);
  const double wire = wireBytes(bytes.size());
  Connection& way = *connection;
  way.toServer = std::max(way.toServer, std::max(fibers_.now(), way.readyAt) + delay());
  fibers_.at(way.toServer, 0, [this, connection, wire, bytes = std::move(bytes)]() mutable {
    bytesIn += static_cast<uint64_t>(wire);
    ++requests;
    received_ = std::max(received_, fibers_.now()) + wire * 8 / options_.bandwidth;
    fibers_.at(work(received_, options_.requestCost), 0, [this, connection, bytes = std::move(bytes)] {
      if (connection->up && store_ != nullptr) store_->take(connection->id, bytes);
    });
  });
}

void Network::answer(StorePeerId id, const StoreReply& reply, uint32_t request, double cost) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  std::string text = textOf(reply);
  const double wire =
      wireBytes(encodeStoreReplyHead(reply.answer, request, text.size()).size() + text.size());
  bytesOut += static_cast<uint64_t>(wire);
  sent_ = std::max(sent_, work(fibers_.now(), cost)) + wire * 8 / options_.bandwidth;
  connection->toClient = std::max(connection->toClient, sent_ + delay());
  fibers_.at(connection->toClient, connection->node,
             [connection, response = StoreResponse{reply.answer, request, std::move(text)}] {
               if (connection->up) connection->onAnswer(response);
             });
}

void Network::close(const std::shared_ptr<Connection>& connection) {
  if (!connection || !std::exchange(connection->up, false)) return;
  connection->onAnswer = nullptr;
  connection->onLost = nullptr;
  connections_.erase(connection->id);
  endOnServer(connection->id);
}

void Network::endOnServer(StorePeerId connection) {
  fibers_.after(options_.roundTrip / 2, 0, [this, connection] {
    if (store_ != nullptr) store_->close(connection);
  });
}

void Network::endOnClient(const std::shared_ptr<Connection>& connection) {
  fibers_.after(options_.roundTrip / 2, connection->node, [connection] {
    if (std::exchange(connection->up, false)) connection->onLost();
  });
}

void Network::endStore() {
  store_ = nullptr;
  for (const auto& [id, connection] : std::exchange(connections_, {})) endOnClient(connection);
}

void Network::kill(int node, bool host) {
  fibers_.kill(node);
  for (auto it = connections_.begin(); it != connections_.end();) {
    const std::shared_ptr<Connection> connection = it->second;
    const bool gone = !host && (connection->node == node || node == 0);
    if (gone && node != 0) endOnServer(connection->id);
    if (gone && node == 0) endOnClient(connection);
    it = gone ? connections_.erase(it) : std::next(it);
  }
}

void SimServer::pass(std::vector<StoreAskers::Answer> answers) {
  const double cost = network_.options().answerCost /
                      static_cast<double>(StoreLoop::writersFor(answers.size(), kCpusOfNodeZero));
  for (StoreAskers::Answer& answer : answers) {
    const auto local = locals_.find(answer.connection);
    if (local == locals_.end())
      network_.answer(answer.connection, answer.reply, answer.id, cost);
    else
      local->second({answer.reply.answer, answer.id, textOf(answer.reply)});
  }
  const double next = desk_->nextDeadline();
  if (next >= deadline_) return;
  deadline_ = next;
  network_.fibers().at(next, node_, [this, next, lives = std::weak_ptr<bool>(lives_)] {
    if (lives.expired() || deadline_ != next) return;
    deadline_ = kForever;
    proceed();
  });
}

void SimServer::take(StorePeerId connection, const std::string& bytes) {
  auto request = decodeStoreRequest(std::string_view(bytes).substr(kStoreLength));
  std::vector<StoreAskers::Answer> answers;
  if (request.ok()) (void)askers_.take(connection, std::move(*request), network_.fibers().now(), answers);
  pass(std::move(answers));
}

void SimServer::takeLocal(StorePeerId connection, StoreRequest request) {
  std::vector<StoreAskers::Answer> answers;
  (void)askers_.take(connection, std::move(request), network_.fibers().now(), answers);
  pass(std::move(answers));
}

void SimServer::close(StorePeerId connection) {
  askers_.close(connection);
}

void SimServer::proceed() {
  std::vector<StoreAskers::Answer> answers;
  askers_.proceed(network_.fibers().now(), answers);
  pass(std::move(answers));
}

StorePeerId SimServer::attach(const std::string& prefix, std::function<void(StoreResponse)> onAnswer) {
  desk_->attach(prefix);
  locals_[++next_] = std::move(onAnswer);
  return next_;
}

void SimServer::detach(StorePeerId connection, const std::string& prefix) {
  askers_.close(connection);
  desk_->detach(prefix);
  locals_.erase(connection);
}

Result<Fd> SimServer::connect(const std::string& /*prefix*/) {
  return Error{ErrorCode::kUsage, "a simulated server has no sockets", ""};
}

/// A relay's connection. connect() does not wait as the real one does: what is put goes once it is there.
class SimUplink : public StoreUplink {
 public:
  SimUplink(Network& network, int node) : network_(network), node_(node) {}
  ~SimUplink() override { network_.close(connection_); }
  SimUplink(const SimUplink&) = delete;
  SimUplink& operator=(const SimUplink&) = delete;

  Status connect(double /*now*/) override {
    if (connection_) return {};
    if (!network_.reachable()) return Error{ErrorCode::kIo, "could not reach the store", ""};
    connection_ = network_.connect(node_);
    connection_->onAnswer = [this](StoreResponse response) {
      answers_.push_back(std::move(response));
      server->proceed();
    };
    connection_->onLost = [this] {
      lost_ = true;
      server->proceed();
    };
    return {};
  }
  [[nodiscard]] bool connected() const override { return connection_ != nullptr; }
  void put(const StoreRequest& request) override { network_.send(connection_, request); }
  Status proceed(std::vector<StoreResponse>& answers) override {
    answers = std::exchange(answers_, {});
    if (!std::exchange(lost_, false)) return {};
    connection_.reset();
    return Error{ErrorCode::kIo, "the connection broke off", ""};
  }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] size_t backlog() const override { return 0; }
  void stop() override {}

  SimServer* server = nullptr;

 private:
  Network& network_;
  int node_;
  std::shared_ptr<Network::Connection> connection_;
  std::vector<StoreResponse> answers_;
  bool lost_ = false;
};

/// A client's connection: to node 0, or to the server of its own node.
class SimCalls : public StoreCalls {
 public:
  SimCalls(SimWorld& world, Network& network, int node, StoreClientOptions options,
           SimServer* server = nullptr, std::string prefix = "")
      : world_(world),
        network_(network),
        node_(node),
        options_(std::move(options)),
        server_(server),
        prefix_(std::move(prefix)) {
    world_.calls.push_back(this);
    if (server_ != nullptr)
      local_ = server_->attach(prefix_, [this](StoreResponse response) { answered(std::move(response)); });
  }
  ~SimCalls() override {
    if (server_ != nullptr) server_->detach(local_, prefix_);
    network_.close(connection_);
    std::erase(world_.calls, this);
  }
  SimCalls(const SimCalls&) = delete;
  SimCalls& operator=(const SimCalls&) = delete;

  Status connect(double timeout) override { return reach(timeout); }

  Result<StoreResponse> ask(const StoreRequest& request, double wait) override {
    if (server_ == nullptr) MUSTER_CHECK_OK(reach(options_.connectTimeout));
    const uint32_t id = ++last_;
    const double deadline = network_.fibers().now() + wait + options_.answerTimeout;
    open_[id] = {network_.fibers().waker(), std::nullopt, false};
    StoreRequest sent = request;
    sent.id = id;
    put(std::move(sent));
    while (true) {
      Open& open = open_.at(id);
      if (open.response) return std::move(open_.extract(id).mapped().response).value();
      const bool cancelled = options_.cancelled();
      const double left = deadline - network_.fibers().now();
      if (open.lost || cancelled || left <= 0) {
        const bool lost = open.lost;
        open_.erase(id);
        if (!lost) withdraw(id);
        if (cancelled) return Error{ErrorCode::kTimeout, options_.who + " was cancelled", ""};
        return Error{
            ErrorCode::kIo,
            fmt::format("{} lost the store: {}", options_.who, lost ? "it was cut" : "no answer in time"),
            ""};
      }
      open.waker = network_.fibers().waker();
      network_.fibers().sleep(left);
    }
  }
  [[nodiscard]] int connections() const override { return connections_; }
  [[nodiscard]] const StoreClientOptions& options() const override { return options_; }

  void lookAgain() {
    for (auto& [id, open] : open_) network_.fibers().wake(open.waker);
  }

 private:
  struct Open {
    Fibers::Waker waker;
    std::optional<StoreResponse> response;
    bool lost = false;
  };

  Status reach(double timeout) {
    Fibers& fibers = network_.fibers();
    const double deadline = fibers.now() + timeout;
    while (!connection_) {
      if (options_.cancelled()) return Error{ErrorCode::kTimeout, options_.who + " was cancelled", ""};
      if (network_.reachable()) {
        ++connections_;
        connection_ = network_.connect(node_);
        connection_->onAnswer = [this](StoreResponse response) { answered(std::move(response)); };
        connection_->onLost = [this] { lose(); };
      } else if (fibers.now() >= deadline) {
        return Error{ErrorCode::kIo, options_.who + " could not reach the store", ""};
      } else {
        fibers.sleep(kRetryPause);
      }
    }
    return {};
  }

  void put(StoreRequest request) {
    if (server_ == nullptr) return network_.send(connection_, request);
    if (!request.key.empty()) request.key.insert(0, prefix_);
    if (request.op == StoreOp::kTouch) request.value.insert(0, prefix_);
    if (node_ == 0) {
      ++network_.requests;
      const double done = network_.work(network_.fibers().now(), network_.options().requestCost);
      network_.fibers().at(
          done, 0,
          [server = server_, lives = server_->lives(), local = local_, request = std::move(request)] {
            if (!lives.expired()) server->takeLocal(local, request);
          });
    } else {
      server_->takeLocal(local_, std::move(request));
    }
  }

  void withdraw(uint32_t id) {
    StoreRequest request;
    request.op = StoreOp::kWithdraw;
    request.id = id;
    put(std::move(request));
  }

  void answered(StoreResponse response) {
    const auto found = open_.find(response.id);
    if (found == open_.end()) return;
    network_.fibers().wake(found->second.waker);
    found->second.response = std::move(response);
  }

  void lose() {
    connection_.reset();
    for (auto& [id, open] : open_) {
      open.lost = true;
      network_.fibers().wake(open.waker);
    }
  }

  SimWorld& world_;
  Network& network_;
  int node_;
  StoreClientOptions options_;
  SimServer* server_;
  std::string prefix_;
  StorePeerId local_ = 0;
  std::shared_ptr<Network::Connection> connection_;
  uint32_t last_ = 0;
  int connections_ = 0;
  std::map<uint32_t, Open> open_;
};

Result<std::unique_ptr<StoreServer>> SimWorld::serve(const StoreServerOptions& options) {
  auto server = std::make_unique<SimServer>(network_, node_, std::make_unique<StoreState>(options.limits));
  server_ = server.get();
  network_.serve(server_);
  return std::unique_ptr<StoreServer>(std::move(server));
}

Result<std::unique_ptr<StoreServer>> SimWorld::relay(StoreRelayOptions options) {
  auto uplink = std::make_unique<SimUplink>(network_, node_);
  SimUplink& way = *uplink;
  auto server = std::make_unique<SimServer>(
      network_, node_, std::make_unique<StoreRelay>(std::move(options), std::move(uplink)));
  server_ = way.server = server.get();
  return std::unique_ptr<StoreServer>(std::move(server));
}

std::unique_ptr<StoreClient> SimWorld::client(StoreClientOptions options) {
  return std::make_unique<StoreClient>(
      std::make_unique<SimCalls>(*this, network_, node_, std::move(options)));
}

Result<std::unique_ptr<StoreClient>> SimWorld::client(StoreServer& server, const std::string& prefix,
                                                      StoreClientOptions options) {
  return std::make_unique<StoreClient>(std::make_unique<SimCalls>(*this, network_, node_, std::move(options),
                                                                  static_cast<SimServer*>(&server), prefix));
}

std::unique_ptr<Tasks> SimWorld::tasks() {
  return std::make_unique<FiberTasks>(network_.fibers(), node_, [this] { lookAgain(); });
}

void SimWorld::lookAgain() {
  for (SimCalls* one : calls) one->lookAgain();
}

}  // namespace muster::bench
