// SPDX-License-Identifier: Apache-2.0
// Passes the requests of a node's ranks on to node 0's store, all over one connection. Internal to this
// folder.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/rendezvous/store_desk.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/store_uplink.h"

namespace muster {

/// Connects with the first request, and again after the connection was lost: what was open then is answered
/// with kUnavailable and the reason. It keeps no key and decides nothing. Ranks that come to a barrier
/// together are passed on together: at once when all processes of the prefix are there, else after a moment.
class StoreRelay : public StoreDesk {
 public:
  StoreRelay(StoreRelayOptions options, std::unique_ptr<StoreUplink> uplink)
      : options_(std::move(options)), uplink_(std::move(uplink)) {}

  void handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) override;
  void leave(StorePeerId peer) override;
  void attach(const std::string& prefix) override { ++attached_[options_.prefix + prefix]; }
  void detach(const std::string& prefix) override;
  void proceed(double now, std::vector<StoreReply>& out) override;
  [[nodiscard]] double nextDeadline() const override;
  [[nodiscard]] int descriptor() const override { return uplink_->descriptor(); }
  [[nodiscard]] size_t backlog() const override { return uplink_->backlog(); }
  void stop() override { uplink_->stop(); }

 private:
  /// One who waits for the answer to a request, and for which rank where it is a barrier's.
  struct Asker {
    StorePeerId peer = 0;
    int64_t rank = 0;
  };
  /// Ranks at a barrier that node 0 does not know of yet.
  struct Gathering {
    std::vector<Asker> here;
    double due = 0;       ///< when they are passed on, whoever is missing
    double deadline = 0;  ///< of the first of them that gives up
  };
  using Barrier = std::pair<std::string, int64_t>;  ///< its name and how many ranks it waits for

  void gather(const Asker& asker, const StoreRequest& request, double now, std::vector<StoreReply>& out);
  [[nodiscard]] bool complete(const Barrier& barrier, size_t here) const;
  void passOn(const Barrier& barrier, const Gathering& ranks, double now);
  void send(StoreRequest request, std::vector<Asker> askers);
  void lose(const Error& why, std::vector<StoreReply>& out);

  StoreRelayOptions options_;
  std::unique_ptr<StoreUplink> uplink_;
  uint32_t last_ = 0;
  std::atomic<size_t> memory_{0};           // before what counts itself in it
  std::map<std::string, size_t> attached_;  ///< processes by prefix
  std::map<Barrier, Gathering> gatherings_;
  struct Open {
    std::string barrier;  ///< its name, where it is one
    std::vector<Asker> askers;
  };
  std::map<uint32_t, Open> open_;
  std::map<StorePeerId, uint32_t> ids_;
};

}  // namespace muster
