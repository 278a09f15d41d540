// SPDX-License-Identifier: Apache-2.0
// The loop of the store's server: connections, their deadlines and their share of memory. Internal to this
// folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runner/core/files.h"
#include "runner/rendezvous/store_peer.h"
#include "runner/rendezvous/store_state.h"

namespace muster {

/// Belongs to one thread, but for counts().
class StoreLoop {
 public:
  static Result<std::unique_ptr<StoreLoop>> make(Fd listener, int wake, std::string token,
                                                 const StoreLimits& limits);
  /// Serves until `wake` becomes readable.
  void run();
  [[nodiscard]] StoreCounts counts() const;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Connection {
    StorePeer peer;
    uint32_t watched = 0;  ///< epoll events
    double deadline = kNever;
    StorePeer::Phase phase = StorePeer::Phase::kProving;  ///< that the deadline is of
    bool inLength = false;
    size_t reserved = 0;   ///< bytes of buffers
    bool surplus = false;  ///< beyond the limit of connections: told so, then closed
  };
  using Connections = std::map<StorePeerId, Connection>;

  StoreLoop(Fd listener, Fd epoll, std::string token, const StoreLimits& limits);
  bool watch(int fd, StorePeerId id, uint32_t events, bool fresh);
  void acceptAll(double now);
  bool makeRoom(double now);
  void add(Fd socket, double now);
  void admitProven(Connections::iterator it);
  void turnAway(StorePeerId id);
  void serve(StorePeerId id, uint32_t events, double now);
  void advance(StorePeerId id, double now);
  void reply(const std::vector<StoreReply>& replies, double now);
  void admitQueued(double now);
  bool reserve(Connection& connection);
  void release(Connection& connection);
  void settle(Connections::iterator it, double now);
  void setDeadline(Connections::iterator it, double deadline);
  void close(StorePeerId id, StorePeer::End why);
  void closeLate(double now);
  [[nodiscard]] int pause(double now) const;

  Fd listener_;
  Fd epoll_;
  std::string token_;
  StoreLimits limits_;
  StoreState state_;
  Connections connections_;
  std::set<StorePeerId> strangers_;  // ids grow, so the first is the oldest
  std::deque<StorePeerId> queue_;    // wait for room; some may be gone
  std::vector<StorePeerId> again_;   // have bytes that their sockets do not show
  std::set<std::pair<double, StorePeerId>> deadlines_;
  size_t reserved_ = 0;
  StorePeerId nextId_ = 2;
  double acceptAgain_ = kNever;  // when the listener is looked at again after descriptors ran out

  std::atomic<uint64_t> accepted_{0}, noTls_{0}, noToken_{0}, altered_{0}, late_{0}, malformed_{0},
      crowdedOut_{0}, full_{0}, noFiles_{0}, noRoom_{0};
};

}  // namespace muster
