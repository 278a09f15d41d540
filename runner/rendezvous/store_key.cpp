// SPDX-License-Identifier: Apache-2.0
// See store_key.h.
#include "runner/rendezvous/store_key.h"

#include <fmt/format.h>
#include <nettle/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "runner/core/files.h"

namespace muster {
namespace {

constexpr size_t kMinHex = 32, kMinText = 22, kMinDifferent = 8;

bool isHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// `use` separates what is derived for different purposes.
std::array<uint8_t, 32> derive(std::string_view token, char use, std::string_view text) {
  const std::string data = fmt::format("muster rendezvous {}{}", use, text);
  const auto bytesOf = [](std::string_view part) { return reinterpret_cast<const uint8_t*>(part.data()); };
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, token.size(), bytesOf(token));
  hmac_sha256_update(&context, data.size(), bytesOf(data));
  std::array<uint8_t, 32> bytes{};
  hmac_sha256_digest(&context, bytes.size(), bytes.data());
  return bytes;
}

std::string hex(const std::array<uint8_t, 32>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
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

Result<std::string> randomToken() {
  std::array<uint8_t, 32> bytes{};
  // Up to 256 bytes come at once, or not at all.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return Error{ErrorCode::kIo, "cannot get random bytes: " + errnoText(errno), "getrandom"};
  return hex(bytes);
}

std::string storeKey(std::string_view token, std::string_view prefix) {
  return hex(derive(token, 'k', prefix));
}

uint16_t storePort(std::string_view token, std::string_view job) {
  const auto bytes = derive(token, 'p', job);
  const uint32_t number = bytes[0] | bytes[1] << 8 | bytes[2] << 16;
  return static_cast<uint16_t>(kFirstStorePort + number % (kLastStorePort - kFirstStorePort + 1));
}

}  // namespace muster
