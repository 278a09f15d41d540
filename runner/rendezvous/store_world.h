// SPDX-License-Identifier: Apache-2.0
// What a node's share of a run stands on, as a seam: servers, connections and threads of this machine, or a
// simulation's.
#pragma once

#include <memory>
#include <string>

#include "runner/core/result.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/store_server.h"
#include "runner/system/tasks.h"

namespace muster {

/// This machine's. Simulations override all of it.
class StoreWorld {
 public:
  virtual ~StoreWorld() = default;
  virtual Result<std::unique_ptr<StoreServer>> serve(const StoreServerOptions& options);
  virtual Result<std::unique_ptr<StoreServer>> relay(StoreRelayOptions options);
  /// Of a store at an address.
  virtual std::unique_ptr<StoreClient> client(StoreClientOptions options);
  /// Of a server of this process, for keys that begin with `prefix`; `options` have no address.
  virtual Result<std::unique_ptr<StoreClient>> client(StoreServer& server, const std::string& prefix,
                                                      StoreClientOptions options);
  virtual std::unique_ptr<Tasks> tasks();
};

StoreWorld& thisMachine();

}  // namespace muster
