// SPDX-License-Identifier: Apache-2.0
// See store_client.h.
#include "runner/rendezvous/store_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/rendezvous/store_channel.h"
#include "runner/rendezvous/store_protocol.h"

namespace muster {
namespace {

constexpr double kRetryPause = 0.05;  // seconds between two tries
constexpr double kTryOne = 5;         // seconds for one try, as one that hangs may be the last of a server
constexpr int kSure = 3;  // so many strangers in a row are no accident on the way: waiting will not help
constexpr std::chrono::duration<double> kCancelWait{0.05};  // how often cancellation is looked at

static_assert(StoreClient::kMaxKey == kStoreMaxKey && StoreClient::kMaxValue == kStoreMaxValue);

Error usage(const std::string& what) {
  return {ErrorCode::kUsage, what, ""};
}

std::string secondsText(double seconds) {
  return fmt::format("{:.6g} s", seconds);
}

}  // namespace

/// A connection and the answers that have come for its open requests. Whoever waits reads for all.
struct StoreClient::Link {
  explicit Link(StoreChannel connected) : channel(std::move(connected)) {}

  /// Sends and receives what can be without waiting.
  void turn();
  uint32_t ask(StoreRequest request);
  void withdraw(uint32_t id);

  StoreChannel channel;
  Status failure;
  bool polled = false;  ///< a thread waits for the socket, so the others need not
  uint32_t last = 0;
  std::map<uint32_t, std::optional<StoreResponse>> open;
};

void StoreClient::Link::turn() {
  std::vector<StoreResponse> answers;
  if (failure.ok()) failure = channel.write();
  if (failure.ok()) failure = channel.read(answers);
  for (StoreResponse& answer : answers)
    if (const auto asked = open.find(answer.id); asked != open.end()) asked->second = std::move(answer);
}

uint32_t StoreClient::Link::ask(StoreRequest request) {
  do request.id = ++last;
  while (open.count(request.id) > 0);
  open.emplace(request.id, std::nullopt);
  channel.put(request);
  return request.id;
}

void StoreClient::Link::withdraw(uint32_t id) {
  open.erase(id);
  StoreRequest request;
  request.op = StoreOp::kWithdraw;
  request.id = id;
  channel.put(request);
  turn();
}

struct StoreClient::Parts {
  using Lock = std::unique_lock<std::mutex>;
  explicit Parts(StoreClientOptions given) : options(std::move(given)) {}

  Result<StoreChannel> connect(double timeout);
  Result<std::shared_ptr<Link>> reach(double timeout);
  Result<std::shared_ptr<Link>> awaitLink(Lock& lock, double timeout);
  Result<StoreResponse> ask(const StoreRequest& request, double wait);
  Result<StoreResponse> await(Link& link, uint32_t id, double deadline);
  void wait(Lock& lock, Link& link, double seconds);
  [[nodiscard]] double patience();
  [[nodiscard]] std::string place() const {
    return options.address.host.empty() ? "the store of its group" : "the store at " + options.address.text();
  }
  [[nodiscard]] std::string who() const { return options.who.empty() ? "this process" : options.who; }
  Status checkKey(const std::string& key) const;
  static Status checkTimeout(double timeout);

  StoreClientOptions options;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::shared_ptr<Link> link;
  bool connecting = false;  ///< a thread does, and the others wait for what comes of it
  Error refused;            ///< what came of it last, where it was nothing
  bool found = false;       ///< it was reached before
};

Result<StoreChannel> StoreClient::Parts::connect(double timeout) {
  if (options.address.host.empty() || options.address.port == 0)
    return found ? Error{ErrorCode::kIo, who() + " has lost " + place(), ""}
                 : usage("no address of a store was given");
  const double deadline = systemClock().now() + timeout;
  Error told;  // the last error; one of a try that lacked time says less than the one before it
  for (int strange = 0;;) {
    const double until = std::min(deadline, systemClock().now() + kTryOne);
    Result<StoreChannel> channel =
        StoreChannel::open(options.address, options.prefix, options.key, until, options.cancelled);
    if (channel.ok()) return channel;
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

double StoreClient::Parts::patience() {
  const std::lock_guard lock(mutex);
  return found ? std::min(options.connectTimeout, options.answerTimeout) : options.connectTimeout;
}

/// The connection that another thread is making.
Result<std::shared_ptr<StoreClient::Link>> StoreClient::Parts::awaitLink(Lock& lock, double timeout) {
  const double deadline = systemClock().now() + timeout + kTryOne;
  while (connecting && systemClock().now() < deadline) changed.wait_for(lock, kCancelWait);
  if (link) return link;
  return connecting ? Error{ErrorCode::kIo, who() + " could not reach " + place(), ""} : refused;
}

Result<std::shared_ptr<StoreClient::Link>> StoreClient::Parts::reach(double timeout) {
  Lock lock(mutex);
  if (link) link->turn();
  if (link && link->failure.ok()) return link;
  if (connecting) return awaitLink(lock, timeout);
  link.reset();
  connecting = true;
  lock.unlock();
  Result<StoreChannel> channel = connect(timeout);
  lock.lock();
  connecting = false;
  changed.notify_all();
  if (!channel.ok()) return refused = std::move(channel).error();
  found = true;
  return link = std::make_shared<Link>(std::move(*channel));
}

/// Waits for the socket, or for a thread that does.
void StoreClient::Parts::wait(Lock& lock, Link& link, double seconds) {
  const auto pause = std::min(std::chrono::duration<double>(std::max(seconds, 0.0)), kCancelWait);
  if (link.polled && link.channel.backlog() == 0) return (void)changed.wait_for(lock, pause);
  pollfd fd{link.channel.fd(), static_cast<short>(link.channel.backlog() > 0 ? POLLIN | POLLOUT : POLLIN), 0};
  link.polled = true;
  lock.unlock();
  poll(&fd, 1, static_cast<int>(std::ceil(pause.count() * 1000)));
  lock.lock();
  link.polled = false;
  link.turn();
  changed.notify_all();
}

Result<StoreResponse> StoreClient::Parts::await(Link& link, uint32_t id, double deadline) {
  Lock lock(mutex);
  link.turn();
  while (true) {
    const auto asked = link.open.find(id);
    if (asked->second) {
      StoreResponse response = *std::move(asked->second);
      link.open.erase(asked);
      return response;
    }
    if (!link.failure.ok()) return link.failure.error();
    lock.unlock();
    const bool cancelled = options.cancelled();
    lock.lock();
    const double left = deadline - systemClock().now();
    if (cancelled || left <= 0) {
      link.withdraw(id);
      return Error{ErrorCode::kTimeout, cancelled ? "cancelled" : "no answer in time", ""};
    }
    if (!asked->second) wait(lock, link, left);
  }
}

Result<StoreResponse> StoreClient::Parts::ask(const StoreRequest& request, double wait) {
  MUSTER_TRY(const std::shared_ptr<Link> reached, reach(patience()));
  uint32_t id = 0;
  {
    const Lock lock(mutex);
    id = reached->ask(request);
  }
  Result<StoreResponse> response = await(*reached, id, systemClock().now() + wait + options.answerTimeout);
  const std::string about = printable(request.key.substr(options.prefix.size()), 200);
  if (response.ok() && response->answer == StoreAnswer::kUnavailable)
    return Error{
        ErrorCode::kIo,
        fmt::format("{} cannot use {} (for {}): {}", who(), place(), about, printable(response->text, 400)),
        ""};
  if (response.ok()) return response;
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

StoreClient::StoreClient(Fd socket, StoreClientOptions options) : StoreClient(std::move(options)) {
  parts_->link = std::make_shared<Link>(StoreChannel::over(std::move(socket)));
  parts_->found = true;
}

Status StoreClient::connect(double timeout) {
  MUSTER_TRY([[maybe_unused]] const auto link, parts_->reach(timeout));
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

Result<StoreChanges> StoreClient::changes(const std::string& start, uint64_t since) {
  MUSTER_CHECK_OK(parts_->checkKey(start));
  StoreRequest request;
  request.op = StoreOp::kChanges;
  request.key = parts_->options.prefix + start;
  request.number = static_cast<int64_t>(since);
  MUSTER_TRY(const StoreResponse response, parts_->ask(request, 0));
  if (response.answer != StoreAnswer::kOk) return refusedBy(response, "changes of " + printable(start, 60));
  return decodeStoreChanges(response.text);
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
