// SPDX-License-Identifier: Apache-2.0
// One connection of a client to the store. Internal to this folder.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/rendezvous/wire/store_address.h"
#include "runner/rendezvous/wire/store_protocol.h"
#include "runner/rendezvous/wire/store_stream.h"

struct addrinfo;

namespace muster {

/// A connection whose server has proven that it has the token, or the end of a socket pair. Many requests may
/// be open on it. Belongs to one thread at a time. After an error it is of no further use.
class StoreChannel {
 public:
  using Cancelled = std::function<bool()>;

  /// The first of the address's machines that has the token; each gets a share of the time. `key`: storeKey()
  /// of `prefix`. Ends by the deadline (seconds of systemClock()), or soon after `cancelled` says so. kIo or
  /// kTimeout: nothing answers there, or bytes were altered on their way; kProtocol: what answers is not this
  /// run's store; kUnsupported: it is, and does not serve this connection.
  static Result<StoreChannel> open(const StoreAddress& address, const std::string& prefix,
                                   const std::string& key, double deadline, const Cancelled& cancelled);
  /// A socket pair's end whose other one a server has.
  static StoreChannel over(Fd socket);

  [[nodiscard]] int fd() const { return stream_.fd(); }
  /// Bytes that write() has not sent yet.
  [[nodiscard]] size_t backlog() const { return out_.size() - sent_; }
  /// Keeps a request for write(). `id` of the request must not be in use.
  void put(const StoreRequest& request) { out_ += encodeStoreRequest(request); }
  /// Sends as far as it goes without waiting.
  Status write();
  /// Adds the answers that are here to `out`, without waiting.
  Status read(std::vector<StoreResponse>& out);

 private:
  static Result<StoreChannel> open(const addrinfo& address, const std::string& prefix, const std::string& key,
                                   double deadline, const Cancelled& cancelled);
  explicit StoreChannel(StoreStream stream) : stream_(std::move(stream)) {}
  /// Waits for what the server says first.
  Status awaitGreeting(double deadline, const Cancelled& cancelled);
  [[nodiscard]] Status failure(StoreStream::Step step) const;
  Status takeAnswers(std::vector<StoreResponse>& out);

  StoreStream stream_;
  std::string out_;
  size_t sent_ = 0;
  std::string in_;
};

}  // namespace muster
