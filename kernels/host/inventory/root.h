// SPDX-License-Identifier: Apache-2.0
// Small bounded reads below a root folder: "/" on a machine, a made-up tree in tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace muster {

/// Where /proc, /sys and /etc are read. Nothing there is trusted: every read is bounded, never blocks, and
/// what is not a plain number is an error that quotes it safely.
class Root {
 public:
  explicit Root(std::string prefix = "") : prefix_(std::move(prefix)) {}

  /// The file's text without surrounding white space. Larger than `limit` bytes is an error.
  [[nodiscard]] Result<std::string> text(const std::string& path, size_t limit = 64u << 10) const;
  /// The file's text as one decimal number; "max" and "-1" are for the caller.
  [[nodiscard]] Result<int64_t> integer(const std::string& path) const;
  /// integer(), or `otherwise` where the file is missing or no number. Only for facts that need not be there.
  [[nodiscard]] int64_t integerOr(const std::string& path, int64_t otherwise) const;
  /// text() made printable, or an empty text. Only for facts that need not be there.
  [[nodiscard]] std::string factOr(const std::string& path, const std::string& otherwise = "") const;
  [[nodiscard]] bool exists(const std::string& path) const;
  /// Last component of what a link points to, or an empty text.
  [[nodiscard]] std::string linkName(const std::string& path) const;
  /// Names in a folder in order, without "." and "..", at most 65536; empty where there is no such folder.
  [[nodiscard]] std::vector<std::string> list(const std::string& folder) const;

  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  std::string prefix_;
};

/// "0-3,8" as numbers; malformed parts are left out, at most 65536 numbers.
std::vector<int> parseCpuList(std::string_view text);
/// Numbers as "0-3,8".
std::string formatCpuList(const std::vector<int>& cpus);
/// The value after `key` on the line of `text` that starts with it ("MemTotal:" -> "4679892 kB"), or an empty
/// text.
std::string_view fieldOf(std::string_view text, std::string_view key);
/// Leading decimal digits of `text`, or `otherwise`.
int64_t leadingInteger(std::string_view text, int64_t otherwise);

}  // namespace muster
