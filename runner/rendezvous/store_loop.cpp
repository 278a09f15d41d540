// SPDX-License-Identifier: Apache-2.0
// Polls the connections of the store's server.
#include "runner/rendezvous/store_loop.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/rendezvous/wire/listener.h"

namespace muster {
namespace {

constexpr StorePeerId kListenerId = 0, kWakeId = 1, kDeskId = 2, kFirstId = 3;
constexpr int kAcceptsAtOnce = 64;
constexpr int kAcceptsBesidePeers = 8;  // in a turn where others are served, so that a flood leaves them time
constexpr int kReadsAtOnce = 64;        // of one connection, so that a busy one leaves the others their turn
constexpr double kAcceptPause = 0.1;
constexpr size_t kBufferShare = 4;  // of the memory limit, one part in so many is for requests on their way
constexpr uint64_t kProving = ~uint64_t{0};  // the transfer of a stranger

/// Who can open any number of connections: a machine, which under IPv6 has a network of its own.
std::string networkOf(const sockaddr_storage& from) {
  std::string bytes(reinterpret_cast<const char*>(&from), sizeof from);
  if (from.ss_family == AF_INET) return bytes.substr(offsetof(sockaddr_in, sin_addr), 4);
  if (from.ss_family != AF_INET6) return "";
  const std::string address = bytes.substr(offsetof(sockaddr_in6, sin6_addr), 16);
  const bool mapped = IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(address.data()));
  return mapped ? address.substr(12) : address.substr(0, 8);
}

}  // namespace

StoreLoop::StoreLoop(Fd listener, Fd epoll, Fd wake, std::string token, const StoreLimits& limits,
                     std::unique_ptr<StoreDesk> desk)
    : listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      token_(std::move(token)),
      limits_(limits),
      desk_(std::move(desk)),
      askers_(*desk_),
      nextId_(kFirstId) {}

Result<std::unique_ptr<StoreLoop>> StoreLoop::make(Fd listener, std::string token, const StoreLimits& limits,
                                                   std::unique_ptr<StoreDesk> desk) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC)), wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::unique_ptr<StoreLoop> loop(new StoreLoop(std::move(listener), std::move(epoll), std::move(wake),
                                                std::move(token), limits, std::move(desk)));
  const int others = loop->desk_->descriptor();
  if ((loop->listener_.valid() && !loop->watch(loop->listener_.get(), kListenerId, EPOLLIN, true)) ||
      (others >= 0 && !loop->watch(others, kDeskId, EPOLLIN, true)) ||
      !loop->watch(loop->wake_.get(), kWakeId, EPOLLIN, true))
    return Error{ErrorCode::kIo, "cannot watch the store's sockets: " + errnoText(errno), "store"};
  return loop;
}

StoreCounts StoreLoop::counts() const {
  return {accepted_, noTls_,      noToken_, altered_, late_,  malformed_,
          cut_,      crowdedOut_, full_,    noFiles_, noRoom_};
}

bool StoreLoop::watch(int fd, StorePeerId id, uint32_t events, bool fresh) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll_.get(), fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) == 0;
}

void StoreLoop::stop() {
  stopping_ = true;
  desk_->stop();
  eventfd_write(wake_.get(), 1);
}

void StoreLoop::attach(Fd socket, std::string prefix) {
  {
    const std::lock_guard lock(attachMutex_);
    attached_.emplace_back(std::move(socket), std::move(prefix));
  }
  eventfd_write(wake_.get(), 1);
}

int StoreLoop::pause(double now) const {
  if (!again_.empty()) return 0;
  double next = std::min(desk_->nextDeadline(), acceptAgain_);
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  if (next == kNever) return -1;
  return static_cast<int>(std::ceil(std::clamp(next - now, 0.0, 60.0) * 1000));
}

void StoreLoop::run() {
  std::vector<epoll_event> events(256);
  while (!stopping_) {
    const int ready =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), pause(systemClock().now()));
    const double now = systemClock().now();
    bool newcomers = false;
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kWakeId)
        attachAll(now);
      else if (event.data.u64 == kListenerId)
        newcomers = true;
      else if (event.data.u64 != kDeskId)
        serve(event.data.u64, event.events, now);
    }
    for (const StorePeerId id : std::exchange(again_, {})) serve(id, 0, now);
    // Last: those who are about to prove the token are not crowded out by who has just come.
    if (newcomers) acceptAll(now);
    if (now >= acceptAgain_) {
      acceptAgain_ = kNever;
      watch(listener_.get(), kListenerId, EPOLLIN, false);
    }
    closeLate(now);
    std::vector<StoreAskers::Answer> answers;
    askers_.proceed(now, answers);
    reply(answers);
    flush(now);
    admitQueued(now);
  }
}

void StoreLoop::acceptAll(double now) {
  const int most = connections_.size() > strangers_.size() ? kAcceptsBesidePeers : kAcceptsAtOnce;
  for (int i = 0; i < most; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    Fd socket(
        accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      add(std::move(socket), networkOf(from), now);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (!makeRoom(now)) return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

/// The oldest stranger of the address that has most of them goes: a flood from one machine closes itself.
void StoreLoop::crowdOut() {
  std::map<std::string_view, std::pair<size_t, StorePeerId>> crowds;
  for (const auto& [id, from] : strangers_) ++crowds.try_emplace(from, 0, id).first->second.first;
  const auto largest = std::max_element(crowds.begin(), crowds.end(), [](const auto& a, const auto& b) {
    return a.second.first < b.second.first;
  });
  ++crowdedOut_;
  close(largest->second.second, StorePeer::End::kGone);
}

/// Descriptors ran out: the oldest stranger goes, or, when there is none, newcomers wait a moment.
bool StoreLoop::makeRoom(double now) {
  if (!strangers_.empty()) {
    crowdOut();
    return true;
  }
  ++noFiles_;
  acceptAgain_ = now + kAcceptPause;
  watch(listener_.get(), kListenerId, 0, false);
  return false;
}

void StoreLoop::add(Fd socket, std::string from, double now) {
  if (strangers_.size() >= limits_.strangers) crowdOut();
  tuneStoreSocket(socket.get());
  Result<StoreStream> stream = StoreStream::server(std::move(socket), token_);
  if (!stream.ok()) return;
  strangers_.emplace(nextId_, std::move(from));
  keep(StorePeer(std::move(*stream)), nextId_++, now);
}

void StoreLoop::attachAll(double now) {
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  std::vector<std::pair<Fd, std::string>> fresh;
  {
    const std::lock_guard lock(attachMutex_);
    fresh.swap(attached_);
  }
  for (auto& [socket, prefix] : fresh)
    keep(StorePeer(StoreStream::local(std::move(socket), prefix), true), nextId_++, now);
}

void StoreLoop::keep(StorePeer peer, StorePeerId id, double now) {
  const auto it = connections_.emplace(id, std::move(peer)).first;
  if (it->second.peer.local()) desk_->attach(it->second.peer.prefix());
  if (!watch(it->second.peer.fd(), id, 0, true)) return close(id, StorePeer::End::kGone);
  settle(it, now);
}

void StoreLoop::serve(StorePeerId id, uint32_t events, double now) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;  // closed since the event was noted
  StorePeer& peer = it->second.peer;
  StorePeer::End end = StorePeer::End::kNone;
  if ((events & EPOLLOUT) != 0) end = peer.write();
  if (!peer.wantsToRead() && (events & (EPOLLERR | EPOLLHUP)) != 0) end = StorePeer::End::kGone;
  for (int turn = 0; end == StorePeer::End::kNone && peer.wantsToRead() && turn < kReadsAtOnce; ++turn) {
    // What comes next may end the connection, and must not take along what was asked before.
    if (!peer.buffered()) end = peer.write();
    if (end == StorePeer::End::kNone) end = peer.read();
    if (end == StorePeer::End::kNone && !advance(id, now)) break;
  }
  const auto still = connections_.find(id);  // advance() may have closed it
  if (still == connections_.end()) return;
  if (end == StorePeer::End::kGone && strangers_.count(id) > 0) ++cut_;
  if (end != StorePeer::End::kNone) return close(id, end);
  settle(still, now);
}

/// One beyond the limit stays among the strangers, which are limited, too, and has their deadline.
void StoreLoop::admitProven(Connections::iterator it) {
  const auto stranger = strangers_.find(it->first);
  if (stranger == strangers_.end() || it->second.surplus) return;
  if (connections_.size() - strangers_.size() >= limits_.connections) {
    ++full_;
    it->second.surplus = true;
    return;
  }
  strangers_.erase(stranger);
  ++accepted_;
}

void StoreLoop::turnAway(StorePeerId id, uint32_t request) {
  StorePeer& peer = connections_.at(id).peer;
  peer.answer({id, StoreAnswer::kUnavailable, nullptr,
               fmt::format("it serves {} connections already, which is its limit", limits_.connections)},
              request);
  (void)peer.write();
  close(id, StorePeer::End::kGone);
}

/// Does what the peer's new bytes ask for. False: nothing new can be there, or the connection is gone.
bool StoreLoop::advance(StorePeerId id, double now) {
  const auto it = connections_.find(id);
  Connection& connection = it->second;
  StorePeer& peer = connection.peer;
  if (peer.phase() == StorePeer::Phase::kProving) return false;
  admitProven(it);
  if (peer.phase() == StorePeer::Phase::kQueueing) {
    if (reserve(connection)) return true;
    queue_.push_back(id);
    return false;
  }
  StoreRequest request;
  std::string problem;
  if (!peer.takeRequest(request, problem)) return false;
  release(connection);
  if (problem.empty() && connection.surplus) {
    turnAway(id, request.id);
    return false;
  }
  // What the socket still holds epoll shows again; mostly there is nothing, and a look for it is in vain.
  if (problem.empty() && take(id, std::move(request), now)) return connections_.at(id).peer.buffered();
  close(id, StorePeer::End::kMalformed);
  return false;
}

/// False when the request breaks the protocol.
bool StoreLoop::take(StorePeerId id, StoreRequest request, double now) {
  std::vector<StoreAskers::Answer> answers;
  const StoreAskers::Taken taken = askers_.take(id, std::move(request), now, answers);
  if (taken == StoreAskers::Taken::kWithdrawn) connections_.at(id).peer.forget();
  noRoom_ = desk_->noRoom();
  reply(answers);
  return taken != StoreAskers::Taken::kMalformed;
}

void StoreLoop::reply(const std::vector<StoreAskers::Answer>& answers) {
  for (const StoreAskers::Answer& answer : answers) {
    connections_.at(answer.connection).peer.answer(answer.reply, answer.id);
    answered_.insert(answer.connection);
  }
}

/// Sends what this turn has answered, the answers of a connection together.
void StoreLoop::flush(double now) {
  for (const StorePeerId id : std::exchange(answered_, {})) {
    const auto it = connections_.find(id);
    if (it == connections_.end()) continue;
    const StorePeer::End end = it->second.peer.write();
    if (end == StorePeer::End::kNone)
      settle(it, now);
    else
      close(id, end);
  }
}

/// One request always gets room, however large; so those that wait for room never wait for each other.
bool StoreLoop::reserve(Connection& connection) {
  const size_t size = connection.peer.requestSize(), used = reserved_ + desk_->backlog();
  if (used > 0 && used + size > limits_.memory / kBufferShare) return false;
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

/// Watches for what the peer waits for. A transfer has one deadline, however busily a slow peer trickles.
void StoreLoop::settle(Connections::iterator it, double now) {
  Connection& connection = it->second;
  const StorePeer& peer = connection.peer;
  const uint32_t events =
      (peer.wantsToWrite() ? uint32_t{EPOLLOUT} : 0) | (peer.wantsToRead() ? uint32_t{EPOLLIN} : 0);
  if (events != connection.watched) watch(peer.fd(), it->first, events, false);
  connection.watched = events;
  if (peer.wantsToRead() && peer.buffered()) again_.push_back(it->first);
  const bool stranger = strangers_.count(it->first) > 0;
  const auto follow = [&](Timer& timer, uint64_t transfer) {
    if (timer.transfer == transfer) return;
    timer = {transfer,
             transfer == 0 ? kNever : now + (stranger ? limits_.handshakeTimeout : limits_.transferTimeout)};
  };
  follow(connection.in, stranger ? kProving : peer.receiving());
  follow(connection.out, peer.sending());
  const double deadline = std::min(connection.in.end, connection.out.end);
  if (deadline == connection.deadline) return;
  deadlines_.erase({connection.deadline, it->first});
  connection.deadline = deadline;
  if (deadline != kNever) deadlines_.emplace(deadline, it->first);
}

void StoreLoop::close(StorePeerId id, StorePeer::End why) {
  const auto it = connections_.find(id);
  if (why == StorePeer::End::kNotTls) ++noTls_;
  if (why == StorePeer::End::kNoToken) ++noToken_;
  if (why == StorePeer::End::kAltered) ++altered_;
  if (why == StorePeer::End::kMalformed) ++malformed_;
  release(it->second);
  deadlines_.erase({it->second.deadline, id});
  strangers_.erase(id);
  askers_.close(id);
  if (it->second.peer.local()) desk_->detach(it->second.peer.prefix());
  connections_.erase(it);
}

void StoreLoop::closeLate(double now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    ++late_;
    close(deadlines_.begin()->second, StorePeer::End::kGone);
  }
}

}  // namespace muster
