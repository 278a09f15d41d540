// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the messages of a store.
#include "runner/rendezvous/wire/store_protocol.h"

#include <fmt/format.h>

namespace muster {
namespace {

constexpr int kRankSize = 4;

void appendNumber(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

uint64_t readNumber(std::string_view bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)])) << (8 * i);
  return value;
}

Error malformed(const std::string& what) {
  return {ErrorCode::kProtocol, what, ""};
}

}  // namespace

std::string encodeStoreRequest(const StoreRequest& request) {
  std::string out;
  out.reserve(kStoreLength + kStoreRequestHead + request.key.size() + request.value.size());
  appendNumber(out, kStoreRequestHead + request.key.size() + request.value.size(), 4);
  appendNumber(out, static_cast<uint64_t>(request.op), 1);
  appendNumber(out, request.key.size(), 4);
  for (const int64_t number : {request.timeoutMs, request.number, request.count})
    appendNumber(out, static_cast<uint64_t>(number), 8);
  appendNumber(out, request.id, 4);
  return out.append(request.key).append(request.value);
}

Result<StoreRequest> decodeStoreRequest(std::string_view body) {
  if (body.size() < kStoreRequestHead)
    return malformed(
        fmt::format("a request of {} bytes, expected {} or more", body.size(), kStoreRequestHead));
  const uint64_t op = readNumber(body, 0, 1);
  if (op < static_cast<uint64_t>(StoreOp::kSet) || op > static_cast<uint64_t>(StoreOp::kTouch))
    return malformed(fmt::format("the unknown operation {}", op));
  const uint64_t key = readNumber(body, 1, 4);
  const bool withdraws = op == static_cast<uint64_t>(StoreOp::kWithdraw);
  if ((key == 0) != withdraws || key > kStoreMaxKey || key > body.size() - kStoreRequestHead)
    return malformed(fmt::format("a key of {} bytes, expected 1 to {}", key, kStoreMaxKey));
  StoreRequest request;
  request.op = static_cast<StoreOp>(op);
  request.timeoutMs = static_cast<int64_t>(readNumber(body, 5, 8));
  request.number = static_cast<int64_t>(readNumber(body, 13, 8));
  request.count = static_cast<int64_t>(readNumber(body, 21, 8));
  request.id = static_cast<uint32_t>(readNumber(body, 29, 4));
  request.key = body.substr(kStoreRequestHead, key);
  request.value = body.substr(kStoreRequestHead + key);
  if (request.value.size() > kStoreMaxValue)
    return malformed(
        fmt::format("a value of {} bytes, expected at most {}", request.value.size(), kStoreMaxValue));
  if (request.timeoutMs < 0 || request.timeoutMs > kStoreMaxWait)
    return malformed(fmt::format("a wait of {} ms, expected 0 to {}", request.timeoutMs, kStoreMaxWait));
  if (request.op == StoreOp::kBarrier && (request.count < 1 || request.count > kStoreMaxRanks))
    return malformed(fmt::format("a barrier of {} ranks, expected 1 to {}", request.count, kStoreMaxRanks));
  if (request.op == StoreOp::kTouch && (request.value.empty() || request.value.size() > kStoreMaxKey))
    return malformed(fmt::format("a key of {} bytes, expected 1 to {}", request.value.size(), kStoreMaxKey));
  if (request.op == StoreOp::kBarrier) {
    if (request.value.size() % kRankSize != 0 || request.value.size() >= kRankSize * kStoreMaxTogether)
      return malformed(fmt::format("ranks at a barrier in {} bytes", request.value.size()));
    std::vector<int64_t> ranks = decodeStoreRanks(request.value);
    ranks.push_back(request.number);
    for (const int64_t rank : ranks)
      if (rank < 0 || rank >= request.count)
        return malformed(fmt::format("rank {} at a barrier of {}", rank, request.count));
  }
  return request;
}

std::string encodeStoreRanks(const std::vector<int64_t>& ranks) {
  std::string out;
  for (const int64_t rank : ranks) appendNumber(out, static_cast<uint64_t>(rank), kRankSize);
  return out;
}

std::vector<int64_t> decodeStoreRanks(std::string_view text) {
  std::vector<int64_t> ranks;
  for (size_t at = 0; at + kRankSize <= text.size(); at += kRankSize)
    ranks.push_back(static_cast<int64_t>(readNumber(text, at, kRankSize)));
  return ranks;
}

std::string encodeStoreReplyHead(StoreAnswer answer, uint32_t id, size_t size) {
  std::string out;
  appendNumber(out, size + kStoreReplyHead, 4);
  appendNumber(out, static_cast<uint64_t>(answer), 1);
  appendNumber(out, id, 4);
  return out;
}

Result<StoreResponse> decodeStoreReply(std::string_view body) {
  if (body.size() < kStoreReplyHead) return malformed(fmt::format("it answered with {} bytes", body.size()));
  const uint64_t answer = readNumber(body, 0, 1);
  if (answer > static_cast<uint64_t>(StoreAnswer::kTaken))
    return malformed(fmt::format("it answered with the unknown status {}", answer));
  return StoreResponse{static_cast<StoreAnswer>(answer), static_cast<uint32_t>(readNumber(body, 1, 4)),
                       std::string(body.substr(kStoreReplyHead))};
}

std::string encodeStoreChanges(const StoreChanges& changes) {
  std::string out;
  appendNumber(out, changes.version, 8);
  appendNumber(out, changes.more ? 1 : 0, 1);
  for (const auto& [key, value] : changes.entries) {
    appendNumber(out, key.size(), 4);
    appendNumber(out, value.size(), 4);
    out.append(key).append(value);
  }
  return out;
}

Result<StoreChanges> decodeStoreChanges(std::string_view text) {
  constexpr size_t kHead = 9, kEntryHead = 8;
  if (text.size() < kHead) return malformed(fmt::format("changes of {} bytes", text.size()));
  StoreChanges changes;
  changes.version = readNumber(text, 0, 8);
  changes.more = text[8] != 0;
  for (text.remove_prefix(kHead); !text.empty();) {
    if (text.size() < kEntryHead) return malformed("changes that end within an entry");
    const uint64_t key = readNumber(text, 0, 4), value = readNumber(text, 4, 4);
    text.remove_prefix(kEntryHead);
    if (key + value > text.size()) return malformed("changes that end within an entry");
    changes.entries.emplace_back(text.substr(0, key), text.substr(key, value));
    text.remove_prefix(key + value);
  }
  return changes;
}

uint32_t readStoreLength(std::string_view bytes) {
  return static_cast<uint32_t>(readNumber(bytes, 0, kStoreLength));
}

}  // namespace muster
