// SPDX-License-Identifier: Apache-2.0
// The rendezvous store against hostile peers: its request decoder, and a whole connection with the state
// behind it.
#include <fmt/format.h>
#include <sys/socket.h>

#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "runner/core/text.h"
#include "runner/rendezvous/store_peer.h"
#include "runner/rendezvous/store_state.h"
#include "runner/rendezvous/wire/store_key.h"
#include "runner/rendezvous/wire/store_protocol.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {
namespace {

const std::string kToken = "the token of these fuzzers";
StoreLimits smallLimits() {
  StoreLimits limits;
  limits.keys = 8;
  limits.memory = 16 * 1024;
  return limits;
}

/// A connection of the server, joined to this test by a socket pair, and the state behind it.
class Conversation {
 public:
  /// `proven`: with a client that has the token; else what it sends are raw bytes.
  explicit Conversation(bool proven) : state_(smallLimits()) {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    Fd client(ends[0]), server(ends[1]);
    client_ = client.get();
    peer_ = std::make_unique<StorePeer>(StoreStream::server(std::move(server), kToken).value());
    if (!proven) {
      raw_ = std::move(client);
      return;
    }
    tls_ = StoreStream::client(std::move(client), "", storeKey(kToken, "")).value();
    while (end_ == StorePeer::End::kNone && peer_->phase() == StorePeer::Phase::kProving) {
      tls_->handshake();
      end_ = peer_->read();
    }
  }

  /// Sends `bytes`, and serves them as the store's loop would, until nothing more can come of them.
  std::string serve(const std::string& bytes) {
    if (!peer_) return "there is no socket pair";
    size_t sent = 0;
    if (tls_) {
      tls_->write(bytes, sent);
    } else {
      sent = static_cast<size_t>(send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    }
    if (sent != bytes.size()) return "the socket does not take the input";
    shutdown(client_, SHUT_WR);
    // Each turn takes a length, a request or an answer at least: more turns than bytes mean a busy loop.
    for (size_t turn = 0; turn < 3 * bytes.size() + 8; ++turn) {
      if (end_ != StorePeer::End::kNone) return "";
      if (std::string problem = turnOnce(); !problem.empty()) return problem;
    }
    return "the connection neither ends nor waits";
  }

  [[nodiscard]] StorePeer::Phase phase() const { return peer_->phase(); }
  [[nodiscard]] StorePeer::End end() const { return end_; }
  [[nodiscard]] StoreState& state() { return state_; }
  /// Answers that the client got in full; none: they are not what the protocol says.
  std::optional<size_t> answersReceived() {
    receive();
    std::string_view rest = received_;
    size_t count = 0;
    for (; !rest.empty(); ++count) {
      if (rest.size() < kStoreLength + 1) return std::nullopt;
      const size_t size = readStoreLength(rest);
      if (size > kStoreMaxReply || rest.size() < kStoreLength + size ||
          !decodeStoreReply(rest.substr(kStoreLength, size)).ok())
        return std::nullopt;
      rest.remove_prefix(kStoreLength + size);
    }
    return count;
  }
  [[nodiscard]] size_t answered() const { return answered_; }
  void leave() {
    for (const auto& [peer, id] : asked_) state_.leave(peer);
  }

 private:
  std::string turnOnce() {
    if (peer_->wantsToRead()) end_ = peer_->read();
    if (peer_->wantsToWrite()) end_ = peer_->write();
    if (peer_->phase() == StorePeer::Phase::kQueueing) {
      if (peer_->requestSize() > kStoreMaxRequest) return "a request of any size is let in";
      peer_->admit();
    }
    StoreRequest request;
    std::string problem;
    if (!peer_->takeRequest(request, problem)) return "";
    if (!problem.empty()) {
      end_ = StorePeer::End::kMalformed;
      return problem == printable(problem) ? "" : "a request's fault is not printable";
    }
    if (request.op == StoreOp::kWithdraw) return withdraw(request.id);
    for (const auto& [peer, id] : asked_)
      if (id == request.id) {
        end_ = StorePeer::End::kMalformed;
        return "";
      }
    asked_.emplace(++last_, request.id);
    std::vector<StoreReply> replies;
    state_.handle(last_, std::move(request), 1, replies);
    return answer(replies);
  }

  std::string withdraw(uint32_t id) {
    for (const auto& [peer, asked] : asked_) {
      if (asked != id) continue;
      state_.leave(peer);
      asked_.erase(peer);
      peer_->forget();
      break;
    }
    return "";
  }

  std::string answer(const std::vector<StoreReply>& replies) {
    if (state_.memory() > smallLimits().memory) return "the store holds more than it may";
    for (const StoreReply& reply : replies) {
      const auto asked = asked_.find(reply.peer);
      if (asked == asked_.end()) return "somebody who does not wait is answered";
      peer_->answer(reply, asked->second);
      asked_.erase(asked);
      ++answered_;
    }
    if (end_ == StorePeer::End::kNone) end_ = peer_->write();
    receive();
    return "";
  }

  void receive() {
    char buffer[4096];
    size_t got = 0;
    while (tls_ && tls_->read(buffer, sizeof buffer, got) == StoreStream::Step::kDone)
      received_.append(buffer, got);
  }

  StoreState state_;  // before the peer, which may hold one of its values
  int client_ = -1;
  Fd raw_;
  std::optional<StoreStream> tls_;
  std::unique_ptr<StorePeer> peer_;
  StorePeer::End end_ = StorePeer::End::kNone;
  std::string received_;
  size_t answered_ = 0;
  StorePeerId last_ = 0;
  std::map<StorePeerId, uint32_t> asked_;  ///< open requests, and their numbers
};

std::string checkStranger(const std::string& bytes) {
  Conversation conversation(false);
  if (std::string problem = conversation.serve(bytes); !problem.empty()) return "a stranger: " + problem;
  if (conversation.phase() != StorePeer::Phase::kProving) return "a stranger is let in";
  const bool tls =
      bytes.empty() || (bytes[0] >= 20 && bytes[0] <= 23 && (bytes.size() == 1 || bytes[1] == 3));
  return tls == (conversation.end() != StorePeer::End::kNotTls) ? "" : "a stranger is not told apart";
}

StoreRequest request(StoreOp op, std::string key, std::string value = "") {
  StoreRequest made;
  made.op = op;
  made.key = std::move(key);
  made.value = std::move(value);
  return made;
}

std::vector<StoreRequest> sampleRequests() {
  StoreRequest add = request(StoreOp::kAdd, "count"), barrier = request(StoreOp::kBarrier, "start"),
               wait = request(StoreOp::kGet, "absent"), withdraw = request(StoreOp::kWithdraw, "");
  add.number = 5;
  barrier.count = 1;
  barrier.timeoutMs = 1000;
  wait.timeoutMs = 60'000;
  wait.id = withdraw.id = 9;
  return {request(StoreOp::kSet, "key", "value"),
          request(StoreOp::kGet, "key"),
          add,
          barrier,
          request(StoreOp::kSet, "count", "9223372036854775807"),
          request(StoreOp::kSet, "large", std::string(3000, 'x')),
          request(StoreOp::kClear, "k"),
          wait,
          withdraw};
}

std::vector<std::string> numberWords() {
  std::vector<std::string> words;
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{1024}, uint64_t{1} << 20,
                                uint64_t{1} << 31, uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()})
    for (const size_t size : {4, 8}) {
      std::string bytes;
      for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i));
      words.push_back(bytes);
    }
  return words;
}

}  // namespace

std::string checkStoreRequest(const std::string& body) {
  const Result<StoreRequest> decoded = decodeStoreRequest(body);
  if (!decoded.ok())
    return decoded.error().code == ErrorCode::kProtocol ? problemOfError(decoded.error())
                                                        : "a bad request is not a breach of the protocol";
  if (decoded->key.empty() != (decoded->op == StoreOp::kWithdraw) || decoded->key.size() > kStoreMaxKey)
    return "a key of any length is let in";
  return encodeStoreRequest(*decoded).substr(kStoreLength) == body ? "" : "a request reads as another one";
}

Samples storeRequestSamples() {
  Samples samples{{}, numberWords()};
  for (const StoreRequest& made : sampleRequests())
    samples.seeds.push_back(encodeStoreRequest(made).substr(kStoreLength));
  return samples;
}

std::string checkStoreStream(const std::string& bytes) {
  if (std::string problem = checkStranger(bytes); !problem.empty()) return problem;
  Conversation conversation(true);
  if (conversation.end() != StorePeer::End::kNone) return "the right token is refused";
  if (std::string problem = conversation.serve(bytes); !problem.empty()) return problem;
  const auto received = conversation.answersReceived();
  if (!received) return "an answer breaks the protocol";
  if (*received != conversation.answered()) return "an answer got lost";
  StoreState& state = conversation.state();
  conversation.leave();
  std::vector<StoreReply> late;
  state.proceed(std::numeric_limits<double>::infinity(), late);
  return late.empty() ? "" : "somebody who has left is answered";
}

Samples storeStreamSamples() {
  Samples samples{{""}, numberWords()};
  for (const StoreRequest& made : sampleRequests()) {
    samples.seeds.front() += encodeStoreRequest(made);
    samples.seeds.push_back(encodeStoreRequest(made));
    samples.words.push_back(encodeStoreRequest(made));
  }
  return samples;
}

}  // namespace muster::testing
