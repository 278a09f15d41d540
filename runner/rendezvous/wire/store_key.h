// SPDX-License-Identifier: Apache-2.0
// The secret of a store: what a token must be, and what is derived from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

/// kUsage for a token of fewer than 128 bits: required are 32 hexadecimal digits, or 22 characters of a
/// larger alphabet, at least eight of them different. The message has the command that makes one.
Status checkToken(std::string_view token);

/// The key of the clients whose store keys begin with `prefix`: 64 characters. It opens nothing else, and the
/// token does not follow from it.
std::string storeKey(std::string_view token, std::string_view prefix);

/// The port of a run that was told none: who does not have the token cannot know it and take it first. `job`
/// keeps jobs apart that share a token. Below the ephemeral ports.
uint16_t storePort(std::string_view token, std::string_view job);
constexpr uint16_t kFirstStorePort = 20000, kLastStorePort = 29199;

}  // namespace muster
