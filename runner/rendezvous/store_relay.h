// SPDX-License-Identifier: Apache-2.0
// Passes the requests of a node's ranks on to node 0's store, all over one connection. Internal to this
// folder.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/files.h"
#include "runner/rendezvous/store_channel.h"
#include "runner/rendezvous/store_desk.h"
#include "runner/rendezvous/store_server.h"

namespace muster {

/// Connects with the first request, and again after the connection was lost: what was open then is answered
/// with kUnavailable and the reason. It keeps no key and decides nothing.
class StoreRelay : public StoreDesk {
 public:
  static Result<std::unique_ptr<StoreRelay>> make(StoreRelayOptions options);

  void handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) override;
  void leave(StorePeerId peer) override;
  void proceed(double now, std::vector<StoreReply>& out) override;
  [[nodiscard]] double nextDeadline() const override;
  [[nodiscard]] int descriptor() const override { return epoll_.get(); }
  [[nodiscard]] size_t backlog() const override { return channel_ ? channel_->backlog() : 0; }
  void stop() override { stopping_ = true; }

 private:
  StoreRelay(StoreRelayOptions options, Fd epoll) : options_(std::move(options)), epoll_(std::move(epoll)) {}
  Status connect(double now);
  void watch();
  void lose(const Error& why, std::vector<StoreReply>& out);

  StoreRelayOptions options_;
  Fd epoll_;  ///< watches the connection, whichever it is
  std::optional<StoreChannel> channel_;
  bool watchedForRoom_ = false;
  std::atomic<bool> stopping_{false};
  Error refused_;           ///< why there is no connection
  double tryAgainAt_ = -1;  ///< until then nobody waits for another try
  uint32_t last_ = 0;
  size_t memory_ = 0;  // before what counts itself in it
  std::map<uint32_t, StorePeerId> open_;
  std::map<StorePeerId, uint32_t> ids_;
};

}  // namespace muster
