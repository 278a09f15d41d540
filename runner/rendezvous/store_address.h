// SPDX-License-Identifier: Apache-2.0
// Where a store is: "host:port".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

struct StoreAddress {
  std::string host;  ///< name, IPv4 or IPv6 address without brackets
  uint16_t port = 0;

  [[nodiscard]] std::string text() const;  ///< "node-0:29400", "[fd00::1]:29400"
  bool operator==(const StoreAddress& other) const = default;
};

/// Reads "host:port" and "[IPv6]:port"; kUsage says what was found and wanted.
Result<StoreAddress> parseStoreAddress(std::string_view text);

}  // namespace muster
