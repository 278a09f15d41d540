// SPDX-License-Identifier: Apache-2.0
// One connection of a client to the store. Internal to this folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runner/rendezvous/store_address.h"
#include "runner/rendezvous/store_protocol.h"
#include "runner/rendezvous/tls_stream.h"

struct addrinfo;

namespace muster {

/// What a server answered.
struct StoreResponse {
  StoreAnswer answer = StoreAnswer::kOk;
  std::string text;
};

/// A connection whose server has proven that it has the token. Every call ends by its deadline (seconds of
/// systemClock()), or soon after `cancelled` says so. After an error the channel is of no further use.
class StoreChannel {
 public:
  using Cancelled = std::function<bool()>;

  /// The first of the address's machines that has the token; each gets a share of the time. `key`: storeKey()
  /// of `prefix`. kIo or kTimeout: nothing answers there, or bytes were altered on their way; kProtocol: what
  /// answers is not this run's store.
  static Result<StoreChannel> open(const StoreAddress& address, const std::string& prefix,
                                   const std::string& key, double deadline, const Cancelled& cancelled);
  Result<StoreResponse> ask(const StoreRequest& request, double deadline, const Cancelled& cancelled);
  /// Whether the server has closed it meanwhile.
  [[nodiscard]] bool stale() const;

 private:
  static Result<StoreChannel> open(const addrinfo& address, const std::string& prefix, const std::string& key,
                                   double deadline, const Cancelled& cancelled);
  explicit StoreChannel(TlsStream stream) : stream_(std::move(stream)) {}
  Status proceed(TlsStream::Step step, double deadline, const Cancelled& cancelled);
  Status send(std::string_view bytes, double deadline, const Cancelled& cancelled);
  Result<std::string> receive(size_t size, double deadline, const Cancelled& cancelled);

  TlsStream stream_;
};

}  // namespace muster
