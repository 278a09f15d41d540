// SPDX-License-Identifier: Apache-2.0
// The rendezvous store's server: a bounded key-value store for the ranks and nodes of one run, or a relay to
// one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runner/core/result.h"
#include "runner/rendezvous/wire/store_address.h"
#include "runner/system/files.h"

namespace muster {

/// What a server accepts. Sizes in bytes, times in seconds. A quarter of keys and memory is not for ranks
/// (kRankKeys): whatever they write, runners can tell each other how they stand.
struct StoreLimits {
  size_t keys = 1u << 18;       ///< keys and open barriers
  size_t memory = 256u << 20;   ///< keys, values and the buffers of all connections together
  size_t connections = 512;     ///< that have proven the token; one more is told so and closed
  size_t strangers = 256;       ///< that have not yet; one more closes the oldest of the
                                ///< address that has most
  double handshakeTimeout = 5;  ///< to prove the token
  double transferTimeout = 30;  ///< for one request to arrive in full, or one answer to be taken

  /// Limits for the store of a run with this number of nodes.
  static StoreLimits forNodes(size_t nodes);
};

struct StoreServerOptions {
  std::string bind = "127.0.0.1";  ///< the one address to listen on; empty: all. See listener.h
  uint16_t port = 0;               ///< 0: any free one
  std::string token;               ///< the shared secret: see checkToken()
  StoreLimits limits;
};

/// The store that a relay passes requests on to.
struct StoreRelayOptions {
  StoreAddress address;
  std::string prefix;  ///< of all keys that go through this relay
  std::string key;     ///< storeKey() of the prefix
  std::string who;     ///< "node 3 (n3)": said in errors
};

/// The connections that a server has seen.
struct StoreCounts {
  uint64_t accepted = 0;        ///< had the token
  uint64_t noTls = 0;           ///< spoke something else than TLS
  uint64_t noToken = 0;         ///< had no token, or another one
  uint64_t altered = 0;         ///< their bytes were altered or replayed
  uint64_t late = 0;            ///< were too slow with the handshake, a request or taking an answer
  uint64_t malformed = 0;       ///< had the token and broke a limit
  uint64_t cut = 0;             ///< hung up before they had proven the token
  uint64_t crowdedOut = 0;      ///< strangers closed because there were too many
  uint64_t full = 0;            ///< had the token and were told that there are too many connections
  uint64_t noFiles = 0;         ///< times that no file descriptor was left for a newcomer
  uint64_t noRoom = 0;          ///< requests refused because keys or memory were used up
  uint64_t noRoomForRanks = 0;  ///< and those of them that were of ranks
  uint64_t taken = 0;           ///< requests of ranks for what another connection had
};

/// What was rejected between `earlier` and `now`, for a log; empty where that is nothing.
std::string turnedAway(const StoreCounts& now, const StoreCounts& earlier = {});

/// A running server: one thread of its own. A connection that breaks a limit is closed; the others go on.
class StoreServer {
 public:
  /// kUsage for a token that checkToken() refuses; when the port cannot be bound as listenOn() says; kIo
  /// when this process may not open as many files as the limits need (names the number).
  static Result<std::unique_ptr<StoreServer>> start(const StoreServerOptions& options);
  /// A store that only connect() leads to.
  static Result<std::unique_ptr<StoreServer>> startLocal();
  /// Keeps nothing itself: what connect() brings goes to another store, all over one connection. It is made
  /// with the first request and, once lost, with the next one; open requests then fail with the reason.
  static Result<std::unique_ptr<StoreServer>> startRelay(StoreRelayOptions options);
  /// Closes every connection; clients that wait get a "lost the store" error.
  virtual ~StoreServer() = default;
  /// A connection for one process of this machine, to be given to it and closed here: whoever has it may use
  /// the keys that begin with `prefix`, which is put before each, and nothing else. For StoreClient.
  virtual Result<Fd> connect(const std::string& prefix) = 0;
  [[nodiscard]] virtual uint16_t port() const = 0;
  /// Where processes of this machine reach it.
  [[nodiscard]] virtual const std::string& host() const = 0;
  [[nodiscard]] virtual StoreCounts counts() const = 0;
};

}  // namespace muster
