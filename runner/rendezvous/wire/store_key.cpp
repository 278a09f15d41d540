// SPDX-License-Identifier: Apache-2.0
// Checks tokens and derives keys and ports.
#include "runner/rendezvous/wire/store_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/system/secret.h"

namespace muster {
namespace {

constexpr size_t kMinHex = 32, kMinText = 22, kMinDifferent = 8;

bool isHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// `use` separates what is derived for different purposes.
Digest derive(std::string_view token, char use, std::string_view text) {
  return hmacSha256(token, fmt::format("muster rendezvous {}{}", use, text));
}

}  // namespace

Status checkToken(std::string_view token) {
  const bool hexadecimal = std::all_of(token.begin(), token.end(), isHex);
  const size_t least = hexadecimal ? kMinHex : kMinText;
  const std::set<char> different(token.begin(), token.end());
  if (token.size() >= least && different.size() >= kMinDifferent) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("{}; required: 128 random bits or more, the same on every node: export "
                  "MUSTER_TOKEN=$(openssl rand -hex 16)",
                  token.empty() ? "MUSTER_TOKEN is not set"
                  : token.size() >= least
                      ? fmt::format("MUSTER_TOKEN has only {} different characters", different.size())
                      : fmt::format("MUSTER_TOKEN has {} characters, fewer than {}", token.size(), least)),
      ""};
}

std::string storeKey(std::string_view token, std::string_view prefix) {
  return hexText(derive(token, 'k', prefix));
}

uint16_t storePort(std::string_view token, std::string_view job) {
  const auto bytes = derive(token, 'p', job);
  const uint32_t number = bytes[0] | bytes[1] << 8 | bytes[2] << 16;
  return static_cast<uint16_t>(kFirstStorePort + number % (kLastStorePort - kFirstStorePort + 1));
}

}  // namespace muster
