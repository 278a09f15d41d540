// SPDX-License-Identifier: Apache-2.0
// Polls the connections of the store's server.
#include "runner/rendezvous/store_loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <thread>
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
constexpr size_t kConnectionsPerWriter =
    256;  // some 2 ms of encryption and system calls; a thread costs 0.05
constexpr size_t kMostWriters = 4;
constexpr size_t kBufferShare = 4;  // of the memory limit, one part in so many is for requests on their way
constexpr uint64_t kProving = ~uint64_t{0};  // the transfer of a stranger

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
  return {accepted_,   noTls_, noToken_, altered_, late_,           malformed_, cut_,
          crowdedOut_, full_,  noFiles_, noRoom_,  noRoomForRanks_, taken_};
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
      sockaddr_storage own{};
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &(size = sizeof own));
      std::string network = StoreStrangers::networkOf(from, own);
      add(std::move(socket), std::move(network), now);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (!makeRoom(now)) return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

void StoreLoop::crowdOut() {
  ++crowdedOut_;
  close(strangers_.crowded(), StorePeer::End::kGone);
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
  strangers_.add(nextId_, std::move(from));
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
  if (end == StorePeer::End::kGone && strangers_.has(id)) ++cut_;
  if (end != StorePeer::End::kNone) return close(id, end);
  if (answered_.count(id) == 0) settle(still, now);  // else flush() does, once the answer is out
}

/// Tells a stranger that has just proven the token whether it is served. False: it is not, and is gone.
bool StoreLoop::admitProven(Connections::iterator it) {
  if (!strangers_.has(it->first)) return true;
  StorePeer& peer = it->second.peer;
  if (connections_.size() - strangers_.size() >= limits_.connections) {
    ++full_;
    peer.greet({it->first, StoreAnswer::kUnavailable, nullptr,
                fmt::format("it serves {} connections already, which is its limit", limits_.connections)});
    (void)peer.write();
    close(it->first, StorePeer::End::kGone);
    return false;
  }
  strangers_.remove(it->first);
  ++accepted_;
  peer.greet({it->first, StoreAnswer::kOk, nullptr, ""});
  answered_.insert(it->first);
  return true;
}

/// Does what the peer's new bytes ask for. False: nothing new can be there, or the connection is gone.
bool StoreLoop::advance(StorePeerId id, double now) {
  const auto it = connections_.find(id);
  Connection& connection = it->second;
  StorePeer& peer = connection.peer;
  if (peer.phase() == StorePeer::Phase::kProving) return false;
  if (!admitProven(it)) return false;
  if (peer.phase() == StorePeer::Phase::kQueueing) {
    if (reserve(connection)) return true;
    queue_.push_back(id);
    return false;
  }
  StoreRequest request;
  std::string problem;
  if (!peer.takeRequest(request, problem)) return false;
  release(connection);
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
  noRoomForRanks_ = desk_->noRoomForRanks();
  taken_ = desk_->taken();
  reply(answers);
  return taken != StoreAskers::Taken::kMalformed;
}

void StoreLoop::reply(const std::vector<StoreAskers::Answer>& answers) {
  for (const StoreAskers::Answer& answer : answers) {
    connections_.at(answer.connection).peer.answer(answer.reply, answer.id);
    answered_.insert(answer.connection);
  }
}

size_t StoreLoop::writersFor(size_t connections, size_t cpus) {
  return std::clamp(connections / kConnectionsPerWriter, size_t{1},
                    std::clamp(cpus, size_t{1}, kMostWriters));
}

/// Sends what this turn has answered, the answers of a connection together. When a barrier of all nodes ends,
/// several threads encrypt and send, each connection by one of them.
void StoreLoop::flush(double now) {
  struct Written {
    Connections::iterator connection;
    StorePeer::End end = StorePeer::End::kNone;
  };
  std::vector<Written> written;
  for (const StorePeerId id : std::exchange(answered_, {}))
    if (const auto it = connections_.find(id); it != connections_.end()) written.push_back({it});
  std::atomic<size_t> next{0};
  const auto write = [&] {
    for (size_t i = next++; i < written.size(); i = next++)
      written[i].end = written[i].connection->second.peer.write();
  };
  {
    const size_t writers = writersFor(written.size(), std::thread::hardware_concurrency());
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < writers) others.emplace_back(write);
    } catch (const std::system_error&) {  // no more threads: those that there are write all
    }
    write();
  }
  for (const auto& [connection, end] : written) {
    if (end == StorePeer::End::kNone)
      settle(connection, now);
    else
      close(connection->first, end);
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
  const bool stranger = strangers_.has(it->first);
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
  strangers_.remove(id);
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
