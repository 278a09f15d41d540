// SPDX-License-Identifier: Apache-2.0
// A message authentication code (HMAC-SHA256) by which a record shows that it was written with its node's
// key, and has not changed since. It is the record's last line, over all that stands before it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runner/core/result.h"
#include "runner/record/record.h"

namespace muster {

/// The key of one node, which tells nothing of the run's key or of other nodes' keys.
std::string nodeKeyOf(const std::string& runKey, const std::string& node);

/// Reads a key from a file of one line. kUsage for a file that others than its owner can read or write, or
/// that belongs to another user than root and this one.
Result<std::string> readKey(const std::filesystem::path& path);

/// The MAC of a record that has none yet, by its node's key.
std::string macOf(const Record& record, const std::string& nodeKey);

/// Fails for a record's text without a MAC, or with another one than the node's key gives.
Status checkMac(std::string_view text, const std::string& nodeKey);

}  // namespace muster
