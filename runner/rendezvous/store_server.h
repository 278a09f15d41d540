// SPDX-License-Identifier: Apache-2.0
// The rendezvous store's server: a bounded key-value store over TCP for the ranks and nodes of one run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster {

/// What a server puts up with. Sizes in bytes, times in seconds.
struct StoreLimits {
  size_t keys = 1u << 18;       ///< keys and open barriers
  size_t memory = 256u << 20;   ///< keys, values and the buffers of all connections together
  size_t connections = 512;     ///< that have proven the token
  size_t strangers = 256;       ///< that have not yet; one more closes the oldest
  double handshakeTimeout = 5;  ///< to prove the token
  double transferTimeout = 30;  ///< for one request to arrive in full, or one answer to be taken
};

struct StoreServerOptions {
  std::string bind = "127.0.0.1";     ///< the one address to listen on; empty: all. See listener.h
  std::vector<uint16_t> ports = {0};  ///< tried in this order; 0: any free one
  std::string token;                  ///< the shared secret, never empty
  StoreLimits limits;
};

/// What a server has seen; for the log.
struct StoreCounts {
  uint64_t accepted = 0;    ///< connections that proved the token
  uint64_t wrongToken = 0;  ///< connections that tried another one
  uint64_t late = 0;        ///< too slow with the handshake, a request or taking an answer
  uint64_t malformed = 0;   ///< spoke something else, or broke a limit
  uint64_t crowdedOut = 0;  ///< closed because there were too many
};

/// A running server: one thread of its own. A connection that breaks a limit is closed; the others go on.
class StoreServer {
 public:
  /// kUsage for an empty token, kIo when no port can be bound (names each and why).
  static Result<std::unique_ptr<StoreServer>> start(const StoreServerOptions& options);
  /// Closes every connection; clients that wait get a "lost the store" error.
  virtual ~StoreServer() = default;
  [[nodiscard]] virtual uint16_t port() const = 0;
  /// Where processes of this machine reach it.
  [[nodiscard]] virtual const std::string& host() const = 0;
  [[nodiscard]] virtual StoreCounts counts() const = 0;
};

/// 32 random bytes in hex, for stores that only this machine's ranks may use.
Result<std::string> randomToken();

}  // namespace muster
