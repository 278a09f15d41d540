// SPDX-License-Identifier: Apache-2.0
// Where a store is: "host:port", or "host" where the port follows from the run's token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

struct StoreAddress {
  std::string host;   ///< name, IPv4 or IPv6 address without brackets
  uint16_t port = 0;  ///< 0: see storePort()

  [[nodiscard]] std::string text() const;  ///< "node-0:29400", "[fd00::1]:29400", "node-0"
  bool operator==(const StoreAddress& other) const = default;
};

/// Reads "host:port", "[IPv6]:port", and both without a port; kUsage says what was found and required.
Result<StoreAddress> parseStoreAddress(std::string_view text);

}  // namespace muster
