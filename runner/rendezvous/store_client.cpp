// SPDX-License-Identifier: Apache-2.0
// Sends requests to the store and waits for their answers.
#include "runner/rendezvous/store_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "runner/core/text.h"
#include "runner/rendezvous/store_calls.h"
#include "runner/rendezvous/wire/store_protocol.h"

namespace muster {
namespace {

static_assert(StoreClient::kMaxKey == kStoreMaxKey && StoreClient::kMaxValue == kStoreMaxValue);

Status checkKey(const StoreClientOptions& options, const std::string& key) {
  if (key.empty()) return storeUsage("an empty store key");
  const size_t size = options.prefix.size() + key.size();
  if (size > StoreClient::kMaxKey)
    return storeUsage(fmt::format("store key {} has {} bytes with its prefix, expected at most {}",
                                  printable(key, 60), size, StoreClient::kMaxKey));
  return {};
}

Status checkTimeout(double timeout) {
  if (timeout >= 0) return {};
  return storeUsage(fmt::format("store timeout {}, expected 0 or more seconds", timeout));
}

int64_t milliseconds(double seconds) {
  return static_cast<int64_t>(std::ceil(std::min(seconds * 1000, static_cast<double>(kStoreMaxWait))));
}

Error refusedBy(const StoreResponse& response, const std::string& what) {
  const std::string text = "the store refused " + what + ": " + response.text;
  return response.answer == StoreAnswer::kTaken ? Error{ErrorCode::kPeer, text, ""} : storeUsage(text);
}

bool isRefused(const StoreResponse& response) {
  return response.answer == StoreAnswer::kRefused || response.answer == StoreAnswer::kTaken;
}

Result<int64_t> numberOf(const StoreResponse& response) {
  int64_t number = 0;
  const char* end = response.text.data() + response.text.size();
  const auto [at, failure] = std::from_chars(response.text.data(), end, number);
  if (failure != std::errc() || at != end)
    return Error{ErrorCode::kProtocol,
                 "the store answered \"" + printable(response.text, 40) + "\", expected a number", ""};
  return number;
}

}  // namespace

StoreClient::StoreClient(std::unique_ptr<StoreCalls> calls) : calls_(std::move(calls)) {}
StoreClient::StoreClient(StoreClientOptions options) : StoreClient(makeStoreCalls(std::move(options))) {}
StoreClient::StoreClient(Fd socket, StoreClientOptions options)
    : StoreClient(makeStoreCalls(std::move(options), std::move(socket))) {}
StoreClient::~StoreClient() = default;

std::string StoreClient::who() const {
  const std::string& who = calls_->options().who;
  return who.empty() ? "this process" : who;
}

Status StoreClient::connect(double timeout) {
  return calls_->connect(timeout);
}

Status StoreClient::set(const std::string& key, std::string_view value) {
  MUSTER_CHECK_OK(checkKey(calls_->options(), key));
  if (value.size() > kMaxValue)
    return storeUsage(fmt::format("the value of store key {} has {} bytes, expected at most {}",
                                  printable(key, 60), value.size(), kMaxValue));
  StoreRequest request;
  request.op = StoreOp::kSet;
  request.key = calls_->options().prefix + key;
  request.value = value;
  MUSTER_TRY(const StoreResponse response, calls_->ask(request, 0));
  if (response.answer != StoreAnswer::kOk) return refusedBy(response, "key " + printable(key, 60));
  return {};
}

Result<std::string> StoreClient::get(const std::string& key, double timeout) {
  MUSTER_CHECK_OK(checkKey(calls_->options(), key));
  MUSTER_CHECK_OK(checkTimeout(timeout));
  StoreRequest request;
  request.op = StoreOp::kGet;
  request.key = calls_->options().prefix + key;
  request.timeoutMs = milliseconds(timeout);
  MUSTER_TRY(StoreResponse response, calls_->ask(request, timeout));
  if (response.answer == StoreAnswer::kTimeout)
    return Error{ErrorCode::kTimeout,
                 fmt::format("{} waited {} for store key {}, which was not set", who(), secondsText(timeout),
                             printable(key, 200)),
                 ""};
  if (isRefused(response)) return refusedBy(response, "key " + printable(key, 60));
  return std::move(response.text);
}

Result<int64_t> StoreClient::add(const std::string& key, int64_t delta) {
  MUSTER_CHECK_OK(checkKey(calls_->options(), key));
  StoreRequest request;
  request.op = StoreOp::kAdd;
  request.key = calls_->options().prefix + key;
  request.number = delta;
  MUSTER_TRY(const StoreResponse response, calls_->ask(request, 0));
  if (response.answer != StoreAnswer::kOk) return refusedBy(response, "counter " + printable(key, 60));
  return numberOf(response);
}

Status StoreClient::barrier(const std::string& name, int rank, int count, double timeout) {
  MUSTER_CHECK_OK(checkKey(calls_->options(), name));
  MUSTER_CHECK_OK(checkTimeout(timeout));
  if (count < 1 || rank < 0 || rank >= count || count > kStoreMaxRanks)
    return storeUsage(fmt::format("rank {} at barrier {} of {} ranks", rank, printable(name, 60), count));
  StoreRequest request;
  request.op = StoreOp::kBarrier;
  request.key = calls_->options().prefix + name;
  request.timeoutMs = milliseconds(timeout);
  request.number = rank;
  request.count = count;
  MUSTER_TRY(const StoreResponse response, calls_->ask(request, timeout));
  if (response.answer == StoreAnswer::kTimeout)
    return Error{ErrorCode::kTimeout,
                 fmt::format("{} waited up to {} at barrier {}: {}", who(), secondsText(timeout),
                             printable(name, 200), response.text),
                 ""};
  if (isRefused(response)) return refusedBy(response, "barrier " + printable(name, 60));
  return {};
}

Result<StoreChanges> StoreClient::changes(const std::string& start, uint64_t since) {
  MUSTER_CHECK_OK(checkKey(calls_->options(), start));
  StoreRequest request;
  request.op = StoreOp::kChanges;
  request.key = calls_->options().prefix + start;
  request.number = static_cast<int64_t>(since);
  MUSTER_TRY(const StoreResponse response, calls_->ask(request, 0));
  if (response.answer != StoreAnswer::kOk) return refusedBy(response, "changes of " + printable(start, 60));
  return decodeStoreChanges(response.text);
}

Result<StoreChanges> StoreClient::touch(const std::string& key, const std::string& watched, uint64_t since,
                                        double timeout) {
  MUSTER_CHECK_OK(checkKey(calls_->options(), key));
  MUSTER_CHECK_OK(checkKey(calls_->options(), watched));
  MUSTER_CHECK_OK(checkTimeout(timeout));
  StoreRequest request;
  request.op = StoreOp::kTouch;
  request.key = calls_->options().prefix + key;
  request.value = calls_->options().prefix + watched;
  request.number = static_cast<int64_t>(since);
  request.timeoutMs = milliseconds(timeout);
  MUSTER_TRY(const StoreResponse response, calls_->ask(request, timeout));
  if (response.answer == StoreAnswer::kTimeout) return StoreChanges{since, false, {}};
  if (response.answer != StoreAnswer::kOk) return refusedBy(response, "key " + printable(key, 60));
  return decodeStoreChanges(response.text);
}

int StoreClient::connections() const {
  return calls_->connections();
}

Result<int64_t> StoreClient::clear(const std::string& start) {
  MUSTER_CHECK_OK(checkKey(calls_->options(), start));
  StoreRequest request;
  request.op = StoreOp::kClear;
  request.key = calls_->options().prefix + start;
  MUSTER_TRY(const StoreResponse response, calls_->ask(request, 0));
  return numberOf(response);
}

}  // namespace muster
