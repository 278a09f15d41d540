// SPDX-License-Identifier: Apache-2.0
// See store_client.h.
#include "runner/rendezvous/store_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <mutex>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/rendezvous/store_channel.h"
#include "runner/rendezvous/store_protocol.h"

namespace muster {
namespace {

constexpr double kRetryPause = 0.05;  // seconds between two tries
constexpr double kTryOne = 5;         // seconds for one try, as one that hangs may be the last of a server
constexpr int kSure = 3;  // so many strangers in a row are no accident on the way: waiting will not help
constexpr size_t kIdleChannels = 4;

static_assert(StoreClient::kMaxKey == kStoreMaxKey && StoreClient::kMaxValue == kStoreMaxValue);

Error usage(const std::string& what) {
  return {ErrorCode::kUsage, what, ""};
}

std::string secondsText(double seconds) {
  return fmt::format("{:.6g} s", seconds);
}

}  // namespace

struct StoreClient::Parts {
  explicit Parts(StoreClientOptions given) : options(std::move(given)) {}

  Result<StoreChannel> connect(double timeout);
  Result<StoreChannel> channel();
  Result<StoreResponse> ask(const StoreRequest& request, double wait);
  [[nodiscard]] std::string place() const { return "the store at " + options.address.text(); }
  [[nodiscard]] std::string who() const { return options.who.empty() ? "this process" : options.who; }
  [[nodiscard]] bool connectedBefore() {
    const std::lock_guard lock(mutex);
    return found;
  }
  Status checkKey(const std::string& key) const;
  static Status checkTimeout(double timeout);

  StoreClientOptions options;
  std::mutex mutex;  // guards what follows
  std::vector<StoreChannel> idle;
  bool found = false;  // it was reached before
};

Result<StoreChannel> StoreClient::Parts::connect(double timeout) {
  if (options.address.host.empty() || options.address.port == 0)
    return usage("no address of a store was given");
  const double deadline = systemClock().now() + timeout;
  Error told;  // the last error; one of a try that lacked time says less than the one before it
  for (int strange = 0;;) {
    const double until = std::min(deadline, systemClock().now() + kTryOne);
    Result<StoreChannel> channel =
        StoreChannel::open(options.address, options.prefix, options.key, until, options.cancelled);
    if (channel.ok()) {
      const std::lock_guard lock(mutex);
      found = true;
      return channel;
    }
    if (options.cancelled())
      return Error{ErrorCode::kTimeout, who() + " was cancelled while it looked for " + place(), ""};
    Error error = std::move(channel).error();
    strange = error.code == ErrorCode::kProtocol ? strange + 1 : 0;
    if (error.code != ErrorCode::kTimeout || told.message.empty()) told = std::move(error);
    const double now = systemClock().now();
    if (strange == kSure || now >= deadline) {
      const bool sure = strange == kSure;
      return Error{sure ? ErrorCode::kProtocol : ErrorCode::kIo,
                   fmt::format("{} could not reach {}: {}{}", who(), place(), told.text(),
                               sure ? "" : "; tried for " + secondsText(timeout)),
                   ""};
    }
    poll(nullptr, 0, static_cast<int>(std::ceil(std::min(kRetryPause, deadline - now) * 1000)));
  }
}

Result<StoreChannel> StoreClient::Parts::channel() {
  {
    const std::lock_guard lock(mutex);
    while (!idle.empty()) {
      StoreChannel channel = std::move(idle.back());
      idle.pop_back();
      if (!channel.stale()) return channel;
    }
  }
  return connect(connectedBefore() ? std::min(options.connectTimeout, options.answerTimeout)
                                   : options.connectTimeout);
}

Result<StoreResponse> StoreClient::Parts::ask(const StoreRequest& request, double wait) {
  MUSTER_TRY(StoreChannel channel, this->channel());
  const double deadline = systemClock().now() + wait + options.answerTimeout;
  Result<StoreResponse> response = channel.ask(request, deadline, options.cancelled);
  const std::string about = printable(request.key.substr(options.prefix.size()), 200);
  if (response.ok() && response->answer == StoreAnswer::kUnavailable)
    return Error{ErrorCode::kIo,
                 fmt::format("{} was turned away by {} when it asked for {}: {}", who(), place(), about,
                             printable(response->text, 400)),
                 ""};
  if (response.ok()) {
    const std::lock_guard lock(mutex);
    if (idle.size() < kIdleChannels) idle.push_back(std::move(channel));
    return response;
  }
  if (options.cancelled())
    return Error{ErrorCode::kTimeout, fmt::format("{} was cancelled while it waited for {}", who(), about),
                 ""};
  // The server answers a wait that was in vain; silence means that server or network are gone.
  return Error{
      response.error().code == ErrorCode::kProtocol ? ErrorCode::kProtocol : ErrorCode::kIo,
      fmt::format("{} lost {} while it asked for {}: {}", who(), place(), about, response.error().text()),
      ""};
}

Status StoreClient::Parts::checkKey(const std::string& key) const {
  if (key.empty()) return usage("an empty store key");
  const size_t size = options.prefix.size() + key.size();
  if (size > kMaxKey)
    return usage(fmt::format("store key {} has {} bytes with its prefix, wanted at most {}",
                             printable(key, 60), size, kMaxKey));
  return {};
}

Status StoreClient::Parts::checkTimeout(double timeout) {
  if (timeout >= 0) return {};
  return usage(fmt::format("store timeout {}, wanted 0 or more seconds", timeout));
}

namespace {

int64_t milliseconds(double seconds) {
  return static_cast<int64_t>(std::ceil(std::min(seconds * 1000, static_cast<double>(kStoreMaxWait))));
}

Error refusedBy(const StoreResponse& response, const std::string& what) {
  return usage("the store refused " + what + ": " + response.text);
}

Result<int64_t> numberOf(const StoreResponse& response) {
  int64_t number = 0;
  const char* end = response.text.data() + response.text.size();
  const auto [at, failure] = std::from_chars(response.text.data(), end, number);
  if (failure != std::errc() || at != end)
    return Error{ErrorCode::kProtocol,
                 "the store answered \"" + printable(response.text, 40) + "\", wanted a number", ""};
  return number;
}

}  // namespace

StoreClient::StoreClient(StoreClientOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {}
StoreClient::~StoreClient() = default;

Status StoreClient::connect(double timeout) {
  MUSTER_TRY(StoreChannel channel, parts_->connect(timeout));
  const std::lock_guard lock(parts_->mutex);
  parts_->idle.push_back(std::move(channel));
  return {};
}

Status StoreClient::set(const std::string& key, std::string_view value) {
  MUSTER_CHECK_OK(parts_->checkKey(key));
  if (value.size() > kMaxValue)
    return usage(fmt::format("the value of store key {} has {} bytes, wanted at most {}", printable(key, 60),
                             value.size(), kMaxValue));
  StoreRequest request;
  request.op = StoreOp::kSet;
  request.key = parts_->options.prefix + key;
  request.value = value;
  MUSTER_TRY(const StoreResponse response, parts_->ask(request, 0));
  if (response.answer != StoreAnswer::kOk) return refusedBy(response, "key " + printable(key, 60));
  return {};
}

Result<std::string> StoreClient::get(const std::string& key, double timeout) {
  MUSTER_CHECK_OK(parts_->checkKey(key));
  MUSTER_CHECK_OK(Parts::checkTimeout(timeout));
  StoreRequest request;
  request.op = StoreOp::kGet;
  request.key = parts_->options.prefix + key;
  request.timeoutMs = milliseconds(timeout);
  MUSTER_TRY(StoreResponse response, parts_->ask(request, timeout));
  if (response.answer == StoreAnswer::kTimeout)
    return Error{ErrorCode::kTimeout,
                 fmt::format("{} waited {} for store key {}, and nobody set it", parts_->who(),
                             secondsText(timeout), printable(key, 200)),
                 ""};
  if (response.answer == StoreAnswer::kRefused) return refusedBy(response, "key " + printable(key, 60));
  return std::move(response.text);
}

Result<int64_t> StoreClient::add(const std::string& key, int64_t delta) {
  MUSTER_CHECK_OK(parts_->checkKey(key));
  StoreRequest request;
  request.op = StoreOp::kAdd;
  request.key = parts_->options.prefix + key;
  request.number = delta;
  MUSTER_TRY(const StoreResponse response, parts_->ask(request, 0));
  if (response.answer != StoreAnswer::kOk) return refusedBy(response, "counter " + printable(key, 60));
  return numberOf(response);
}

Status StoreClient::barrier(const std::string& name, int rank, int count, double timeout) {
  MUSTER_CHECK_OK(parts_->checkKey(name));
  MUSTER_CHECK_OK(Parts::checkTimeout(timeout));
  if (count < 1 || rank < 0 || rank >= count || count > kStoreMaxRanks)
    return usage(fmt::format("rank {} at barrier {} of {} ranks", rank, printable(name, 60), count));
  StoreRequest request;
  request.op = StoreOp::kBarrier;
  request.key = parts_->options.prefix + name;
  request.timeoutMs = milliseconds(timeout);
  request.number = rank;
  request.count = count;
  MUSTER_TRY(const StoreResponse response, parts_->ask(request, timeout));
  if (response.answer == StoreAnswer::kTimeout)
    return Error{ErrorCode::kTimeout,
                 fmt::format("{} waited up to {} at barrier {}: {}", parts_->who(), secondsText(timeout),
                             printable(name, 200), response.text),
                 ""};
  if (response.answer == StoreAnswer::kRefused) return refusedBy(response, "barrier " + printable(name, 60));
  return {};
}

Result<int64_t> StoreClient::clear(const std::string& start) {
  MUSTER_CHECK_OK(parts_->checkKey(start));
  StoreRequest request;
  request.op = StoreOp::kClear;
  request.key = parts_->options.prefix + start;
  MUSTER_TRY(const StoreResponse response, parts_->ask(request, 0));
  return numberOf(response);
}

}  // namespace muster
