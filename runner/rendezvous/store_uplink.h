// SPDX-License-Identifier: Apache-2.0
// A relay's connection to the store that it passes requests on to. Internal to this folder, and a seam for
// simulations.
#pragma once

#include <memory>
#include <vector>

#include "runner/core/result.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/wire/store_protocol.h"

namespace muster {

/// Belongs to one thread, but for stop().
class StoreUplink {
 public:
  virtual ~StoreUplink() = default;
  /// Waits until it is connected. Soon after a failed try it fails at once, with the same reason.
  virtual Status connect(double now) = 0;
  [[nodiscard]] virtual bool connected() const = 0;
  /// Keeps a request for proceed(). `id` of the request must not be in use.
  virtual void put(const StoreRequest& request) = 0;
  /// Sends and receives what can be without waiting. After an error it is not connected any more.
  virtual Status proceed(std::vector<StoreResponse>& answers) = 0;
  /// Becomes readable when proceed() has something to do; -1: there is none.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Bytes that proceed() has not sent yet.
  [[nodiscard]] virtual size_t backlog() const = 0;
  /// Ends a connect() that waits. From any thread.
  virtual void stop() = 0;
};

Result<std::unique_ptr<StoreUplink>> makeStoreUplink(StoreRelayOptions options);

}  // namespace muster
