// SPDX-License-Identifier: Apache-2.0
// The seam over this machine: real servers, connections and threads.
#include "runner/rendezvous/store_world.h"

#include <utility>

namespace muster {

Result<std::unique_ptr<StoreServer>> StoreWorld::serve(const StoreServerOptions& options) {
  return StoreServer::start(options);
}

Result<std::unique_ptr<StoreServer>> StoreWorld::relay(StoreRelayOptions options) {
  return StoreServer::startRelay(std::move(options));
}

std::unique_ptr<StoreClient> StoreWorld::client(StoreClientOptions options) {
  return std::make_unique<StoreClient>(std::move(options));
}

Result<std::unique_ptr<StoreClient>> StoreWorld::client(StoreServer& server, const std::string& prefix,
                                                        StoreClientOptions options) {
  MUSTER_TRY(Fd socket, server.connect(prefix));
  return std::make_unique<StoreClient>(std::move(socket), std::move(options));
}

std::unique_ptr<Tasks> StoreWorld::tasks() {
  return makeThreads();
}

StoreWorld& thisMachine() {
  static StoreWorld machine;
  return machine;
}

}  // namespace muster
