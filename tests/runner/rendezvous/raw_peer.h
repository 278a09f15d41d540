// SPDX-License-Identifier: Apache-2.0
// A peer of the store that keeps to no protocol: raw bytes over a real socket, or, once it has proven a key,
// bytes of its choice under TLS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runner/rendezvous/wire/store_stream.h"
#include "runner/system/files.h"

namespace muster::testing {

/// Of the stores that these tests start.
inline const std::string kToken = "a secret of these tests";
/// Seconds in which something must have happened.
inline constexpr double kGenerous = 20;

class RawPeer {
 public:
  /// Connects to 127.0.0.1:port; the test fails when it cannot.
  explicit RawPeer(uint16_t port);
  /// A connection that somebody else has made.
  explicit RawPeer(Fd socket) : socket_(std::move(socket)) {}

  /// Whether all of it could be sent.
  bool send(std::string_view bytes);
  /// What comes within `seconds`, at most `size` bytes; shorter when the other side closes.
  std::string receive(size_t size, double seconds = 10);
  /// Whether the other side closes the connection within `seconds`; takes and drops what comes before.
  bool closedWithin(double seconds);
  [[nodiscard]] int descriptor() const { return tls_ ? tls_->fd() : socket_.get(); }
  /// Says that nothing more will be sent.
  void halfClose();
  /// Does the handshake of a client with `token`; the test fails when it is refused.
  void prove(const std::string& token, const std::string& prefix = "");
  /// The same with any key; what came of it.
  TlsFault tryKey(const std::string& key);

 private:
  /// What is there within `seconds`, at most `size` bytes; nothing at the end or when the time is over.
  std::string some(size_t size, double seconds);
  [[nodiscard]] bool await(short events, double deadline) const;

  Fd socket_;
  std::optional<StoreStream> tls_;
  bool ended_ = false;
};

}  // namespace muster::testing
