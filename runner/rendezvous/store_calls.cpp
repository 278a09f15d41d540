// SPDX-License-Identifier: Apache-2.0
// See store_calls.h: threads that share one connection.
#include "runner/rendezvous/store_calls.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/rendezvous/wire/store_channel.h"

namespace muster {
namespace {

constexpr double kRetryPause = 0.05;  // seconds between two tries
constexpr double kTryOne = 5;         // seconds for one try, as one that hangs may be the last of a server
constexpr int kSure = 3;  // so many strangers in a row are no accident on the way: waiting does not help
constexpr std::chrono::duration<double> kLook{0.05};  // how often cancellation is looked at

/// A connection and the answers that have come for its open requests. Whoever waits reads for all.
struct Link {
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

void Link::turn() {
  std::vector<StoreResponse> answers;
  if (failure.ok()) failure = channel.write();
  if (failure.ok()) failure = channel.read(answers);
  for (StoreResponse& answer : answers)
    if (const auto asked = open.find(answer.id); asked != open.end()) asked->second = std::move(answer);
}

uint32_t Link::ask(StoreRequest request) {
  do request.id = ++last;
  while (open.count(request.id) > 0);
  open.emplace(request.id, std::nullopt);
  channel.put(request);
  return request.id;
}

void Link::withdraw(uint32_t id) {
  open.erase(id);
  StoreRequest request;
  request.op = StoreOp::kWithdraw;
  request.id = id;
  channel.put(request);
  turn();
}

class ConnectedCalls : public StoreCalls {
 public:
  ConnectedCalls(StoreClientOptions options, Fd socket) : options_(std::move(options)) {
    if (!socket.valid()) return;
    link_ = std::make_shared<Link>(StoreChannel::over(std::move(socket)));
    found_ = true;
  }

  Status connect(double timeout) override {
    MUSTER_TRY([[maybe_unused]] const auto link, reach(timeout));
    return {};
  }
  Result<StoreResponse> ask(const StoreRequest& request, double wait) override;
  [[nodiscard]] int connections() const override { return connections_; }
  [[nodiscard]] const StoreClientOptions& options() const override { return options_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  Result<StoreChannel> open(double timeout);
  Result<std::shared_ptr<Link>> reach(double timeout);
  Result<std::shared_ptr<Link>> awaitLink(Lock& lock, double timeout);
  Result<StoreResponse> await(Link& link, uint32_t id, double deadline);
  void wait(Lock& lock, Link& link, double seconds);
  [[nodiscard]] double patience();
  [[nodiscard]] std::string place() const {
    return options_.address.host.empty() ? "the store of its group"
                                         : "the store at " + options_.address.text();
  }
  [[nodiscard]] std::string who() const { return options_.who.empty() ? "this process" : options_.who; }

  StoreClientOptions options_;
  std::atomic<int> connections_{0};
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::shared_ptr<Link> link_;
  bool connecting_ = false;  ///< a thread does, and the others wait for what comes of it
  Error refused_;            ///< what came of it last, where it was nothing
  bool found_ = false;       ///< it was reached before
};

Result<StoreChannel> ConnectedCalls::open(double timeout) {
  if (options_.address.host.empty() || options_.address.port == 0)
    return found_ ? Error{ErrorCode::kIo, who() + " has lost " + place(), ""}
                  : storeUsage("no address of a store was given");
  const double deadline = systemClock().now() + timeout;
  Error told;  // the last error; one of a try that lacked time says less than the one before it
  for (int strange = 0;;) {
    const double until = std::min(deadline, systemClock().now() + kTryOne);
    Result<StoreChannel> channel =
        StoreChannel::open(options_.address, options_.prefix, options_.key, until, options_.cancelled);
    if (channel.ok()) return channel;
    if (options_.cancelled())
      return Error{ErrorCode::kTimeout, who() + " was cancelled while it looked for " + place(), ""};
    Error error = std::move(channel).error();
    if (error.code == ErrorCode::kUnsupported)
      return Error{ErrorCode::kIo, fmt::format("{} cannot use {}: {}", who(), place(), error.text()), ""};
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

double ConnectedCalls::patience() {
  const std::lock_guard lock(mutex_);
  return found_ ? std::min(options_.connectTimeout, options_.answerTimeout) : options_.connectTimeout;
}

/// The connection that another thread is making.
Result<std::shared_ptr<Link>> ConnectedCalls::awaitLink(Lock& lock, double timeout) {
  const double deadline = systemClock().now() + timeout + kTryOne;
  while (connecting_ && systemClock().now() < deadline) changed_.wait_for(lock, kLook);
  if (link_) return link_;
  return connecting_ ? Error{ErrorCode::kIo, who() + " could not reach " + place(), ""} : refused_;
}

Result<std::shared_ptr<Link>> ConnectedCalls::reach(double timeout) {
  Lock lock(mutex_);
  if (link_) link_->turn();
  if (link_ && link_->failure.ok()) return link_;
  if (connecting_) return awaitLink(lock, timeout);
  link_.reset();
  connecting_ = true;
  lock.unlock();
  Result<StoreChannel> channel = open(timeout);
  lock.lock();
  connecting_ = false;
  changed_.notify_all();
  if (!channel.ok()) return refused_ = std::move(channel).error();
  found_ = true;
  ++connections_;
  return link_ = std::make_shared<Link>(std::move(*channel));
}

/// Waits for the socket, or for a thread that does.
void ConnectedCalls::wait(Lock& lock, Link& link, double seconds) {
  const auto pause = std::min(std::chrono::duration<double>(std::max(seconds, 0.0)), kLook);
  if (link.polled && link.channel.backlog() == 0) return (void)changed_.wait_for(lock, pause);
  pollfd fd{link.channel.fd(), static_cast<short>(link.channel.backlog() > 0 ? POLLIN | POLLOUT : POLLIN), 0};
  link.polled = true;
  lock.unlock();
  poll(&fd, 1, static_cast<int>(std::ceil(pause.count() * 1000)));
  lock.lock();
  link.polled = false;
  link.turn();
  changed_.notify_all();
}

Result<StoreResponse> ConnectedCalls::await(Link& link, uint32_t id, double deadline) {
  Lock lock(mutex_);
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
    const bool cancelled = options_.cancelled();
    lock.lock();
    const double left = deadline - systemClock().now();
    if (cancelled || left <= 0) {
      link.withdraw(id);
      return Error{ErrorCode::kTimeout, cancelled ? "cancelled" : "no answer in time", ""};
    }
    if (!asked->second) wait(lock, link, left);
  }
}

Result<StoreResponse> ConnectedCalls::ask(const StoreRequest& request, double wait) {
  MUSTER_TRY(const std::shared_ptr<Link> reached, reach(patience()));
  uint32_t id = 0;
  {
    const Lock lock(mutex_);
    id = reached->ask(request);
  }
  Result<StoreResponse> response = await(*reached, id, systemClock().now() + wait + options_.answerTimeout);
  const std::string about = printable(request.key.substr(options_.prefix.size()), 200);
  if (response.ok() && response->answer == StoreAnswer::kUnavailable)
    return Error{
        ErrorCode::kIo,
        fmt::format("{} cannot use {} (for {}): {}", who(), place(), about, printable(response->text, 400)),
        ""};
  if (response.ok()) return response;
  if (options_.cancelled())
    return Error{ErrorCode::kTimeout, fmt::format("{} was cancelled while it waited for {}", who(), about),
                 ""};
  // The server answers a wait that was in vain; silence means that server or network are gone.
  return Error{
      response.error().code == ErrorCode::kProtocol ? ErrorCode::kProtocol : ErrorCode::kIo,
      fmt::format("{} lost {} while it asked for {}: {}", who(), place(), about, response.error().text()),
      ""};
}

}  // namespace

Error storeUsage(const std::string& what) {
  return {ErrorCode::kUsage, what, ""};
}

std::string secondsText(double seconds) {
  return fmt::format("{:.6g} s", seconds);
}

std::unique_ptr<StoreCalls> makeStoreCalls(StoreClientOptions options, Fd socket) {
  return std::make_unique<ConnectedCalls>(std::move(options), std::move(socket));
}

}  // namespace muster
