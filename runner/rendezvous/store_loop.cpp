// SPDX-License-Identifier: Apache-2.0
// See store_loop.h.
#include "runner/rendezvous/store_loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "runner/core/clock.h"
#include "runner/rendezvous/listener.h"

namespace muster {
namespace {

constexpr StorePeerId kListenerId = 0;
constexpr StorePeerId kWakeId = 1;
constexpr int kAcceptsAtOnce = 64;
constexpr double kAcceptPause = 0.1;
constexpr size_t kBufferShare = 4;  // of the memory limit, one part in so many is for requests on their way

}  // namespace

StoreLoop::StoreLoop(Fd listener, Fd epoll, std::string token, const StoreLimits& limits)
    : listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      token_(std::move(token)),
      limits_(limits),
      state_(limits) {}

Result<std::unique_ptr<StoreLoop>> StoreLoop::make(Fd listener, int wake, std::string token,
                                                   const StoreLimits& limits) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  std::unique_ptr<StoreLoop> loop(
      new StoreLoop(std::move(listener), std::move(epoll), std::move(token), limits));
  if (!loop->watch(loop->listener_.get(), kListenerId, EPOLLIN, true) ||
      !loop->watch(wake, kWakeId, EPOLLIN, true))
    return Error{ErrorCode::kIo, "cannot watch the store's sockets: " + errnoText(errno), "store"};
  return loop;
}

StoreCounts StoreLoop::counts() const {
  return {accepted_, noTls_, noToken_, altered_, late_, malformed_, crowdedOut_, full_, noFiles_, noRoom_};
}

bool StoreLoop::watch(int fd, StorePeerId id, uint32_t events, bool fresh) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll_.get(), fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) == 0;
}

int StoreLoop::pause(double now) const {
  if (!again_.empty()) return 0;
  double next = std::min(state_.nextDeadline(), acceptAgain_);
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  if (next == kNever) return -1;
  return static_cast<int>(std::ceil(std::clamp(next - now, 0.0, 60.0) * 1000));
}

void StoreLoop::run() {
  std::vector<epoll_event> events(256);
  while (true) {
    const int ready =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), pause(systemClock().now()));
    const double now = systemClock().now();
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kWakeId) return;
      if (event.data.u64 == kListenerId) {
        acceptAll(now);
      } else {
        serve(event.data.u64, event.events, now);
      }
    }
    for (const StorePeerId id : std::exchange(again_, {})) serve(id, 0, now);
    if (now >= acceptAgain_) {
      acceptAgain_ = kNever;
      watch(listener_.get(), kListenerId, EPOLLIN, false);
    }
    closeLate(now);
    std::vector<StoreReply> replies;
    state_.expire(now, replies);
    reply(replies, now);
    admitQueued(now);
  }
}

void StoreLoop::acceptAll(double now) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      add(std::move(socket), now);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (!makeRoom(now)) return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

/// Descriptors ran out: the oldest stranger goes, or, when there is none, newcomers wait a moment.
bool StoreLoop::makeRoom(double now) {
  if (!strangers_.empty()) {
    ++crowdedOut_;
    close(*strangers_.begin(), StorePeer::End::kGone);
    return true;
  }
  ++noFiles_;
  acceptAgain_ = now + kAcceptPause;
  watch(listener_.get(), kListenerId, 0, false);
  return false;
}

void StoreLoop::add(Fd socket, double now) {
  if (strangers_.size() >= limits_.strangers) {
    ++crowdedOut_;
    close(*strangers_.begin(), StorePeer::End::kGone);
  }
  tuneStoreSocket(socket.get());
  const StorePeerId id = nextId_++;
  Result<TlsStream> stream = TlsStream::server(std::move(socket), token_);
  if (!stream.ok()) return;
  const auto it = connections_.emplace(id, Connection{StorePeer(std::move(*stream))}).first;
  strangers_.insert(id);
  it->second.watched = EPOLLIN;
  setDeadline(it, now + limits_.handshakeTimeout);
  if (!watch(it->second.peer.fd(), id, EPOLLIN, true)) close(id, StorePeer::End::kGone);
}

void StoreLoop::serve(StorePeerId id, uint32_t events, double now) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;  // closed since the event was noted
  StorePeer& peer = it->second.peer;
  StorePeer::End end = StorePeer::End::kNone;
  if (peer.wantsToWrite()) {
    end = peer.write();
  } else if (peer.wantsToRead()) {
    end = peer.read();
  } else if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    end = StorePeer::End::kGone;
  }
  if (end != StorePeer::End::kNone) return close(id, end);
  advance(id, now);
}

/// One beyond the limit stays among the strangers, which are limited, too, and has their deadline.
void StoreLoop::admitProven(Connections::iterator it) {
  const auto stranger = strangers_.find(it->first);
  if (stranger == strangers_.end()) return;
  if (connections_.size() - strangers_.size() >= limits_.connections) {
    ++full_;
    it->second.surplus = true;
    return;
  }
  strangers_.erase(stranger);
  ++accepted_;
}

void StoreLoop::turnAway(StorePeerId id) {
  (void)connections_.at(id).peer.answer(
      {id, StoreAnswer::kUnavailable, nullptr,
       fmt::format("it serves {} connections already, which is its limit", limits_.connections)});
  close(id, StorePeer::End::kGone);
}

/// Does what the peer's new bytes ask for.
void StoreLoop::advance(StorePeerId id, double now) {
  const auto it = connections_.find(id);
  Connection& connection = it->second;
  StorePeer& peer = connection.peer;
  if (peer.phase() != StorePeer::Phase::kProving && !connection.surplus) admitProven(it);
  if (peer.phase() == StorePeer::Phase::kQueueing && !reserve(connection)) queue_.push_back(id);
  StoreRequest request;
  std::string problem;
  if (!peer.takeRequest(request, problem)) return settle(it, now);
  release(connection);
  if (!problem.empty()) return close(id, StorePeer::End::kMalformed);
  if (connection.surplus) return turnAway(id);
  settle(it, now);
  std::vector<StoreReply> replies;
  state_.handle(id, std::move(request), now, replies);
  noRoom_ = state_.noRoom();
  reply(replies, now);
}

void StoreLoop::reply(const std::vector<StoreReply>& replies, double now) {
  for (const StoreReply& reply : replies) {
    const auto it = connections_.find(reply.peer);
    if (it == connections_.end()) continue;
    const StorePeer::End end = it->second.peer.answer(reply);
    if (end == StorePeer::End::kNone) {
      settle(it, now);
    } else {
      close(reply.peer, end);
    }
  }
}

/// One request always gets room, however large; so those that wait for room never wait for each other.
bool StoreLoop::reserve(Connection& connection) {
  const size_t size = connection.peer.requestSize();
  if (reserved_ > 0 && reserved_ + size > limits_.memory / kBufferShare) return false;
  connection.reserved = size;
  reserved_ += size;
  connection.peer.admit();
  return true;
}

void StoreLoop::release(Connection& connection) {
  reserved_ -= connection.reserved;
  connection.reserved = 0;
}

void StoreLoop::admitQueued(double now) {
  while (!queue_.empty()) {
    const auto it = connections_.find(queue_.front());
    if (it != connections_.end()) {
      if (!reserve(it->second)) return;
      settle(it, now);
    }
    queue_.pop_front();
  }
}

/// Watches for what the peer's phase waits for. A phase has one deadline, however busily a slow peer
/// trickles.
void StoreLoop::settle(Connections::iterator it, double now) {
  Connection& connection = it->second;
  const StorePeer& peer = connection.peer;
  const uint32_t events =
      (peer.wantsToWrite() ? uint32_t{EPOLLOUT} : 0) | (peer.wantsToRead() ? uint32_t{EPOLLIN} : 0);
  if (events != connection.watched) watch(peer.fd(), it->first, events, false);
  connection.watched = events;
  if (peer.wantsToRead() && peer.buffered()) again_.push_back(it->first);
  if (connection.surplus || (peer.phase() == connection.phase && peer.inLength() == connection.inLength))
    return;
  connection.phase = peer.phase();
  connection.inLength = peer.inLength();
  const bool transfers = peer.inLength() || peer.phase() == StorePeer::Phase::kReceiving ||
                         peer.phase() == StorePeer::Phase::kAnswering;
  setDeadline(it, transfers ? now + limits_.transferTimeout : kNever);
}

void StoreLoop::setDeadline(Connections::iterator it, double deadline) {
  deadlines_.erase({it->second.deadline, it->first});
  it->second.deadline = deadline;
  if (deadline != kNever) deadlines_.emplace(deadline, it->first);
}

void StoreLoop::close(StorePeerId id, StorePeer::End why) {
  const auto it = connections_.find(id);
  if (why == StorePeer::End::kNotTls) ++noTls_;
  if (why == StorePeer::End::kNoToken) ++noToken_;
  if (why == StorePeer::End::kAltered) ++altered_;
  if (why == StorePeer::End::kMalformed) ++malformed_;
  release(it->second);
  setDeadline(it, kNever);
  strangers_.erase(id);
  state_.leave(id);
  connections_.erase(it);
}

void StoreLoop::closeLate(double now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    ++late_;
    close(deadlines_.begin()->second, StorePeer::End::kGone);
  }
}

}  // namespace muster
