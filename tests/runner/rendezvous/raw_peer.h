// SPDX-License-Identifier: Apache-2.0
// A peer of the store that keeps to no protocol: raw bytes over a real socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/files.h"

namespace muster::testing {

class RawPeer {
 public:
  /// Connects to 127.0.0.1:port; the test fails when it cannot.
  explicit RawPeer(uint16_t port);

  /// Whether all of it could be sent.
  bool send(std::string_view bytes);
  /// What comes within `seconds`, at most `size` bytes; shorter when the other side closes.
  std::string receive(size_t size, double seconds = 10);
  /// Whether the other side closes the connection within `seconds`; takes and drops what comes before.
  bool closedWithin(double seconds);
  /// Says that nothing more will be sent.
  void halfClose();
  /// Proves `token` as a well-behaved client does; the test fails when it is refused.
  void prove(const std::string& token);

 private:
  Fd socket_;
};

}  // namespace muster::testing
