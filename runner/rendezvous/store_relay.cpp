// SPDX-License-Identifier: Apache-2.0
// See store_relay.h.
#include "runner/rendezvous/store_relay.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <cerrno>
#include <limits>

#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr double kPatience = 5;  // seconds of one try; less than a rank waits for an answer
constexpr double kPause = 1;     // seconds after a failed one in which all requests get its error

}  // namespace

Result<std::unique_ptr<StoreRelay>> StoreRelay::make(StoreRelayOptions options) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return Error{ErrorCode::kIo, "cannot make an epoll: " + errnoText(errno), "store"};
  return std::unique_ptr<StoreRelay>(new StoreRelay(std::move(options), std::move(epoll)));
}

/// The server's thread waits for it: until it has succeeded nothing else can be done for anybody.
Status StoreRelay::connect(double now) {
  if (now < tryAgainAt_) return refused_;
  auto channel = StoreChannel::open(options_.address, options_.prefix, options_.key,
                                    systemClock().now() + kPatience, [this] { return stopping_.load(); });
  if (!channel.ok()) {
    tryAgainAt_ = systemClock().now() + kPause;
    return refused_ = Error{ErrorCode::kIo,
                            fmt::format("{} could not reach the store at {}: {}", options_.who,
                                        options_.address.text(), channel.error().text()),
                            ""};
  }
  channel_ = std::move(*channel);
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, channel_->fd(), &event);
  watchedForRoom_ = false;
  return {};
}

void StoreRelay::watch() {
  if (!channel_ || watchedForRoom_ == (channel_->backlog() > 0)) return;
  watchedForRoom_ = !watchedForRoom_;
  epoll_event event{};
  event.events = EPOLLIN | (watchedForRoom_ ? uint32_t{EPOLLOUT} : 0);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, channel_->fd(), &event);
}

void StoreRelay::handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) {
  request.key.insert(0, options_.prefix);
  if (request.key.size() > kStoreMaxKey)
    return out.push_back(
        {peer, StoreAnswer::kRefused, nullptr,
         fmt::format("it has {} bytes with its prefix, more than {}", request.key.size(), kStoreMaxKey)});
  if (!channel_)
    if (const Status connected = connect(now); !connected.ok())
      return out.push_back({peer, StoreAnswer::kUnavailable, nullptr, connected.error().text()});
  do request.id = ++last_;
  while (open_.count(request.id) > 0);
  open_.emplace(request.id, peer);
  ids_.emplace(peer, request.id);
  channel_->put(request);
}

void StoreRelay::leave(StorePeerId peer) {
  const auto asked = ids_.find(peer);
  if (asked == ids_.end()) return;
  StoreRequest request;
  request.op = StoreOp::kWithdraw;
  request.id = asked->second;
  open_.erase(asked->second);
  ids_.erase(asked);
  if (channel_) channel_->put(request);
}

void StoreRelay::proceed(double /*now*/, std::vector<StoreReply>& out) {
  if (!channel_) return;
  std::vector<StoreResponse> answers;
  Status status = channel_->write();
  if (status.ok()) status = channel_->read(answers);
  for (StoreResponse& answer : answers) {
    const auto asked = open_.find(answer.id);
    if (asked == open_.end()) continue;  // withdrawn
    ids_.erase(asked->second);
    out.push_back({asked->second, answer.answer,
                   std::make_shared<const StoredValue>(std::move(answer.text), memory_), ""});
    open_.erase(asked);
  }
  if (!status.ok()) lose(status.error(), out);
  watch();
}

void StoreRelay::lose(const Error& why, std::vector<StoreReply>& out) {
  const std::string text =
      fmt::format("{} lost the store at {}: {}", options_.who, options_.address.text(), why.text());
  for (const auto& [id, peer] : open_) out.push_back({peer, StoreAnswer::kUnavailable, nullptr, text});
  open_.clear();
  ids_.clear();
  channel_.reset();  // its descriptor leaves the epoll with it
}

double StoreRelay::nextDeadline() const {
  return std::numeric_limits<double>::infinity();
}

}  // namespace muster
