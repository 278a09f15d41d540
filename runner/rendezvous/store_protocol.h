// SPDX-License-Identifier: Apache-2.0
// What travels between the store's server and its clients. Internal to this folder.
//
// Greeting, server first: "MSTORE01" and 32 random bytes; the client answers with 32 random bytes of its own
// and its proof, HMAC-SHA256(token, "client" + both); the server with 'Y' and its proof (HMAC of "server" +
// both), or with 'N'. So each side knows that the other holds the token before it says anything else, and
// neither proof is of use twice. What follows is not encrypted: the token keeps strangers out, not listeners.
// Then the client sends one request at a time and waits for its answer. Numbers are little-endian.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

constexpr std::string_view kStoreMagic = "MSTORE01";
constexpr size_t kStoreNonce = 32;
constexpr size_t kStoreProof = 32;
constexpr size_t kStoreGreeting = 8 + kStoreNonce;
constexpr size_t kStoreHello = kStoreNonce + kStoreProof;  ///< the client's
constexpr char kStoreWelcome = 'Y';
constexpr char kStoreRefusal = 'N';

constexpr size_t kStoreMaxKey = 1024;
constexpr size_t kStoreMaxValue = 4u << 20;
constexpr int64_t kStoreMaxRanks = 1 << 20;                ///< of one barrier
constexpr int64_t kStoreMaxWait = 7LL * 24 * 3600 * 1000;  ///< milliseconds
constexpr size_t kStoreLength = 4;                         ///< the length in front of each frame
constexpr size_t kStoreRequestHead = 1 + 4 + 3 * 8;
constexpr size_t kStoreMaxRequest = kStoreRequestHead + kStoreMaxKey + kStoreMaxValue;
constexpr size_t kStoreMaxReply = 1 + kStoreMaxValue;

enum class StoreOp : uint8_t { kSet = 1, kGet, kAdd, kBarrier, kClear };

struct StoreRequest {
  StoreOp op = StoreOp::kGet;
  int64_t timeoutMs = 0;  ///< get, barrier
  int64_t number = 0;     ///< add: the summand; barrier: the rank
  int64_t count = 0;      ///< barrier: ranks that must come
  std::string key;        ///< or the barrier's name, or what the keys to clear begin with
  std::string value;      ///< set
};

enum class StoreAnswer : uint8_t { kOk = 0, kTimeout = 1, kRefused = 2 };

using StoreNonce = std::array<uint8_t, kStoreNonce>;

/// Random bytes of the system.
Result<StoreNonce> storeNonce();

/// The proof of `side` ("client" or "server") that it knows the token: kStoreProof bytes.
std::string storeProof(std::string_view token, std::string_view side, std::string_view serverNonce,
                       std::string_view clientNonce);

/// Compares in a time that tells nothing about where they differ.
bool sameProof(std::string_view a, std::string_view b);

/// A request with its length in front.
std::string encodeStoreRequest(const StoreRequest& request);
/// Reads a request without its length; kProtocol says what is wrong with it.
Result<StoreRequest> decodeStoreRequest(std::string_view body);

/// Length and status of a reply whose text of `size` bytes follows.
std::string encodeStoreReplyHead(StoreAnswer answer, size_t size);

uint32_t readStoreLength(std::string_view bytes);  ///< of at least kStoreLength bytes

}  // namespace muster
