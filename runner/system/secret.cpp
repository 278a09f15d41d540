// SPDX-License-Identifier: Apache-2.0
// Draws random secrets and computes HMACs.
#include "runner/system/secret.h"

#include <fmt/format.h>
#include <nettle/hmac.h>
#include <sys/random.h>

#include <cerrno>

#include "runner/system/files.h"

namespace muster {

std::string hexText(const Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

Digest hmacSha256(std::string_view key, std::string_view text) {
  const auto bytesOf = [](std::string_view part) { return reinterpret_cast<const uint8_t*>(part.data()); };
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, key.size(), bytesOf(key));
  hmac_sha256_update(&context, text.size(), bytesOf(text));
  Digest digest{};
  hmac_sha256_digest(&context, digest.size(), digest.data());
  return digest;
}

Result<std::string> randomSecret() {
  Digest bytes{};
  // Up to 256 bytes come at once, or not at all.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return Error{ErrorCode::kIo, "cannot get random bytes: " + errnoText(errno), "getrandom"};
  return hexText(bytes);
}

}  // namespace muster
