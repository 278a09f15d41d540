// SPDX-License-Identifier: Apache-2.0
// One connection of a client to the store. Internal to this folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runner/core/files.h"
#include "runner/rendezvous/store_address.h"
#include "runner/rendezvous/store_protocol.h"

namespace muster {

/// What a server answered.
struct StoreResponse {
  StoreAnswer answer = StoreAnswer::kOk;
  std::string text;
};

/// A connection whose server has proven that it knows the token. Every call ends by its deadline (seconds of
/// systemClock()), or soon after `cancelled` says so. After an error the channel is of no further use.
class StoreChannel {
 public:
  using Cancelled = std::function<bool()>;

  /// kIo when nothing answers there, kProtocol for what is no store or refuses the token, kTimeout.
  static Result<StoreChannel> open(const StoreAddress& address, std::string_view token, double deadline,
                                   const Cancelled& cancelled);
  Result<StoreResponse> ask(const StoreRequest& request, double deadline, const Cancelled& cancelled);
  /// Whether the server has closed it meanwhile.
  [[nodiscard]] bool stale() const;

 private:
  explicit StoreChannel(Fd socket) : socket_(std::move(socket)) {}
  Status shakeHands(std::string_view token, double deadline, const Cancelled& cancelled);
  Status send(std::string_view bytes, double deadline, const Cancelled& cancelled);
  Result<std::string> receive(size_t size, double deadline, const Cancelled& cancelled);

  Fd socket_;
};

}  // namespace muster
