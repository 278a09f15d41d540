// SPDX-License-Identifier: Apache-2.0
// Passes the requests of a node's ranks on to node 0's store, all over one connection. Internal to this
// folder.
#pragma once

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
/// with kUnavailable and the reason. It keeps no key and decides nothing.
class StoreRelay : public StoreDesk {
 public:
  StoreRelay(StoreRelayOptions options, std::unique_ptr<StoreUplink> uplink)
      : options_(std::move(options)), uplink_(std::move(uplink)) {}

  void handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) override;
  void leave(StorePeerId peer) override;
  void proceed(double now, std::vector<StoreReply>& out) override;
  [[nodiscard]] double nextDeadline() const override;
  [[nodiscard]] int descriptor() const override { return uplink_->descriptor(); }
  [[nodiscard]] size_t backlog() const override { return uplink_->backlog(); }
  void stop() override { uplink_->stop(); }

 private:
  void lose(const Error& why, std::vector<StoreReply>& out);

  StoreRelayOptions options_;
  std::unique_ptr<StoreUplink> uplink_;
  uint32_t last_ = 0;
  size_t memory_ = 0;  // before what counts itself in it
  std::map<uint32_t, StorePeerId> open_;
  std::map<StorePeerId, uint32_t> ids_;
};

}  // namespace muster
