// SPDX-License-Identifier: Apache-2.0
// How a client's requests reach a store. Internal to this folder, and a seam for simulations.
#pragma once

#include <memory>

#include "runner/core/result.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/wire/store_protocol.h"
#include "runner/system/files.h"

namespace muster {

/// What is wrong with how this process uses the store.
Error storeUsage(const std::string& what);
/// "0.5 s".
std::string secondsText(double seconds);

/// Many requests may be open, of several threads. Nothing is connected before the first of them.
class StoreCalls {
 public:
  virtual ~StoreCalls() = default;
  /// Connects now, trying again and again until `timeout` seconds have passed.
  virtual Status connect(double timeout) = 0;
  /// Waits for the answer, which the store may hold back for `wait` seconds. Errors as StoreClient's.
  virtual Result<StoreResponse> ask(const StoreRequest& request, double wait) = 0;
  [[nodiscard]] virtual int connections() const = 0;
  [[nodiscard]] virtual const StoreClientOptions& options() const = 0;
};

/// Over a connection of this machine. `socket`: one end of a socket pair, or none.
std::unique_ptr<StoreCalls> makeStoreCalls(StoreClientOptions options, Fd socket = Fd());

}  // namespace muster
