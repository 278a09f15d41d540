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
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runner/rendezvous/store_askers.h"
#include "runner/rendezvous/store_desk.h"
#include "runner/rendezvous/store_peer.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/store_strangers.h"
#include "runner/system/files.h"

namespace muster {

/// Belongs to one thread, but for stop(), attach() and counts().
class StoreLoop {
 public:
  /// `listener`: none where only attach() brings connections; then `token` is of no use.
  static Result<std::unique_ptr<StoreLoop>> make(Fd listener, std::string token, const StoreLimits& limits,
                                                 std::unique_ptr<StoreDesk> desk);
  /// Serves until stop().
  void run();
  void stop();
  /// Serves one end of a socket pair, whose keys all get `prefix`.
  void attach(Fd socket, std::string prefix);
  [[nodiscard]] StoreCounts counts() const;
  /// How many threads send answers to so many connections, on a machine with so many CPUs.
  static size_t writersFor(size_t connections, size_t cpus);

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  /// The deadline of a transfer, which has a number.
  struct Timer {
    uint64_t transfer = 0;
    double end = kNever;
  };
  struct Connection {
    explicit Connection(StorePeer given) : peer(std::move(given)) {}
    StorePeer peer;
    uint32_t watched = 0;  ///< epoll events
    Timer in, out;
    double deadline = kNever;  ///< the earlier of both
    size_t reserved = 0;       ///< bytes of buffers
  };
  using Connections = std::map<StorePeerId, Connection>;

  StoreLoop(Fd listener, Fd epoll, Fd wake, std::string token, const StoreLimits& limits,
            std::unique_ptr<StoreDesk> desk);
  bool watch(int fd, StorePeerId id, uint32_t events, bool fresh);
  void acceptAll(double now);
  void attachAll(double now);
  bool makeRoom(double now);
  void crowdOut();
  void add(Fd socket, std::string from, double now);
  void keep(StorePeer peer, StorePeerId id, double now);
  bool admitProven(Connections::iterator it);
  void serve(StorePeerId id, uint32_t events, double now);
  bool advance(StorePeerId id, double now);
  bool take(StorePeerId id, StoreRequest request, double now);
  void reply(const std::vector<StoreAskers::Answer>& answers);
  void flush(double now);
  void admitQueued(double now);
  bool reserve(Connection& connection);
  void release(Connection& connection);
  void settle(Connections::iterator it, double now);
  void close(StorePeerId id, StorePeer::End why);
  void closeLate(double now);
  [[nodiscard]] int pause(double now) const;

  Fd listener_;
  Fd epoll_;
  Fd wake_;
  std::string token_;
  StoreLimits limits_;
  std::unique_ptr<StoreDesk> desk_;
  StoreAskers askers_;
  Connections connections_;
  StoreStrangers strangers_;
  std::deque<StorePeerId> queue_;   // wait for room; some may be gone
  std::vector<StorePeerId> again_;  // have bytes that their sockets do not show
  std::set<StorePeerId> answered_;  // have answers that are not sent yet
  std::set<std::pair<double, StorePeerId>> deadlines_;
  size_t reserved_ = 0;
  StorePeerId nextId_;
  double acceptAgain_ = kNever;  // when the listener is looked at again after descriptors ran out

  std::atomic<bool> stopping_{false};
  std::mutex attachMutex_;
  std::vector<std::pair<Fd, std::string>> attached_;  // guarded by it
  std::atomic<uint64_t> accepted_{0}, noTls_{0}, noToken_{0}, altered_{0}, late_{0}, malformed_{0}, cut_{0},
      crowdedOut_{0}, full_{0}, noFiles_{0}, noRoom_{0}, noRoomForRanks_{0}, taken_{0};
};

}  // namespace muster
