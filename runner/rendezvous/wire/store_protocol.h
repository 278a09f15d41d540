// SPDX-License-Identifier: Apache-2.0
// What travels between the store's server and its clients. Internal to this folder.
//
// All of it goes through a StoreStream. A client may have many requests open: each has a number of its own,
// which is in the answer. Answers come in any order. Numbers are little-endian. Over TLS the server speaks
// first: kStoreGreeting says whether it serves the connection. Until then a client may be crowded out by
// strangers, and tries again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/result.h"

namespace muster {

// What keys begin with in the store of a run over several nodes:
constexpr const char* kRankKeys = "ranks/";     ///< those of ranks
constexpr const char* kRunnerKeys = "muster/";  ///< those of runners
/// Those of runners that only processes on the server's machine may change.
constexpr std::string_view kLeaderKeys = "muster/node-0/";

constexpr size_t kStoreMaxKey = 1024;
constexpr size_t kStoreMaxValue = 4u << 20;
constexpr int64_t kStoreMaxRanks = 1 << 20;                ///< of one barrier
constexpr size_t kStoreMaxTogether = 4096;                 ///< that come to it in one request
constexpr int64_t kStoreMaxWait = 7LL * 24 * 3600 * 1000;  ///< milliseconds
constexpr uint32_t kStoreGreeting = 0;                     ///< number of the answer that nobody asked for
constexpr size_t kStoreLength = 4;                         ///< the length in front of each frame
constexpr size_t kStoreRequestHead = 1 + 4 + 3 * 8 + 4;
constexpr size_t kStoreMaxRequest = kStoreRequestHead + kStoreMaxKey + kStoreMaxValue;
constexpr size_t kStoreReplyHead = 1 + 4;
constexpr size_t kStoreMaxReply = kStoreReplyHead + kStoreMaxValue;

enum class StoreOp : uint8_t { kSet = 1, kGet, kAdd, kBarrier, kClear, kWithdraw, kChanges, kTouch };

struct StoreRequest {
  StoreOp op = StoreOp::kGet;
  int64_t timeoutMs = 0;  ///< get, barrier, touch
  /// add: the summand; barrier: the rank; changes, touch: the version that is known; withdraw: see `count`
  int64_t number = 0;
  int64_t count = 0;  ///< barrier: ranks that must come; withdraw: 1: only the rank `number` leaves
  std::string key;    ///< or the barrier's name, or what the keys to clear or look at begin with
  std::string value;  ///< set; barrier: encodeStoreRanks() of more ranks that are there; touch: a key
  uint32_t id = 0;    ///< withdraw: of the request whose answer nobody waits for any more; it has none itself
  uint64_t connection = 0;  ///< that it came over; not sent
};

/// kUnavailable: the store cannot serve this connection at all. kTaken: another connection has the key, or
/// the place at the barrier.
enum class StoreAnswer : uint8_t { kOk = 0, kTimeout = 1, kRefused = 2, kUnavailable = 3, kTaken = 4 };

/// A request with its length in front.
std::string encodeStoreRequest(const StoreRequest& request);
/// Reads a request without its length; kProtocol says what is wrong with it.
Result<StoreRequest> decodeStoreRequest(std::string_view body);

/// The ranks of one node at a barrier.
std::string encodeStoreRanks(const std::vector<int64_t>& ranks);
std::vector<int64_t> decodeStoreRanks(std::string_view text);

/// Length, status and number of a reply whose text of `size` bytes follows.
std::string encodeStoreReplyHead(StoreAnswer answer, uint32_t id, size_t size);

/// What a server answered.
struct StoreResponse {
  StoreAnswer answer = StoreAnswer::kOk;
  uint32_t id = 0;
  std::string text;
};
/// Reads a reply without its length.
Result<StoreResponse> decodeStoreReply(std::string_view body);

/// What changed among the keys with a common start; see StoreClient::changes().
struct StoreChanges {
  uint64_t version = 0;                                      ///< ask for what is newer next time
  bool more = false;                                         ///< not all went into one answer: ask again
  std::vector<std::pair<std::string, std::string>> entries;  ///< rest of the key, value; oldest first
};
std::string encodeStoreChanges(const StoreChanges& changes);
Result<StoreChanges> decodeStoreChanges(std::string_view text);

uint32_t readStoreLength(std::string_view bytes);  ///< of at least kStoreLength bytes

}  // namespace muster
