// SPDX-License-Identifier: Apache-2.0
// Secrets and what is derived from them, by nettle: for the rendezvous and for the keys of records.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

using Digest = std::array<uint8_t, 32>;

/// Lower-case hexadecimal digits.
std::string hexText(const Digest& digest);

/// HMAC-SHA256 (RFC 2104).
Digest hmacSha256(std::string_view key, std::string_view text);

/// 256 random bits as 64 hexadecimal digits.
Result<std::string> randomSecret();

}  // namespace muster
