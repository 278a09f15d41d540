// SPDX-License-Identifier: Apache-2.0
// The rendezvous store's client: blocking calls, each with a deadline.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runner/core/result.h"
#include "runner/rendezvous/wire/store_address.h"
#include "runner/rendezvous/wire/store_protocol.h"
#include "runner/system/files.h"

namespace muster {

class StoreCalls;

struct StoreClientOptions {
  StoreAddress address;        ///< none where a connection is given
  std::string prefix;          ///< put before every key and barrier name; of at most 240 bytes
  std::string key;             ///< storeKey() of the prefix
  std::string who;             ///< "rank 2", "node 3 (n3)": said in errors
  double connectTimeout = 30;  ///< seconds to reach a server whose start may still be ahead; one that was
                               ///< lost is looked for no longer than answerTimeout
  double answerTimeout = 10;   ///< seconds a server may take beyond what it was asked to wait
  std::function<bool()> cancelled = [] { return false; };  ///< looked at every 50 ms and after a signal
};

/// Thread-safe: calls on several threads share one connection. Nothing is connected before the first call.
/// When the connection fails all calls on it do; the next call connects again.
///
/// Errors: kTimeout when the wait was in vain (names key or barrier, who waited, and for how long; a barrier
/// also names the ranks that did not come) or was cancelled; kIo when the store cannot be reached or was
/// lost; kProtocol for another token or what is no store; kUsage for a key or value over the limits.
class StoreClient {
 public:
  static constexpr size_t kMaxKey = 1024;        ///< bytes, prefix included
  static constexpr size_t kMaxValue = 4u << 20;  ///< bytes

  explicit StoreClient(StoreClientOptions options);
  /// Of a server of this machine: StoreServer::connect() made the connection. Once lost, it is lost for good.
  StoreClient(Fd socket, StoreClientOptions options);
  explicit StoreClient(std::unique_ptr<StoreCalls> calls);
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  /// Connects now, trying again and again until `timeout` seconds have passed.
  Status connect(double timeout);

  Status set(const std::string& key, std::string_view value);
  /// Waits for `key` at most `timeout` seconds; 0: answers what is there now.
  Result<std::string> get(const std::string& key, double timeout);
  /// Adds to a counter that starts at 0 and returns its new value.
  Result<int64_t> add(const std::string& key, int64_t delta);
  /// Waits until ranks 0 .. count-1 are all here. A name may be used again after that; but once one rank's
  /// wait has timed out, every rank that waits or comes later gets the same kTimeout, naming who was missing.
  Status barrier(const std::string& name, int rank, int count, double timeout);
  /// The keys that begin with `start` and were set since `since` (0: all), with their values; one request for
  /// about a megabyte of them. Values over a megabyte are empty.
  Result<StoreChanges> changes(const std::string& start, uint64_t since);
  /// A heartbeat: sets `key` to a number that grows, and waits at most `timeout` seconds for a value of
  /// `watched` that is newer than the version `since`. No entry: there was none.
  Result<StoreChanges> touch(const std::string& key, const std::string& watched, uint64_t since,
                             double timeout);
  /// Grows with each connection that was made: another one may lead to another store.
  [[nodiscard]] int connections() const;
  /// Forgets every key that begins with `start` (after the prefix); returns how many.
  Result<int64_t> clear(const std::string& start);

 private:
  [[nodiscard]] std::string who() const;

  std::unique_ptr<StoreCalls> calls_;
};

}  // namespace muster
