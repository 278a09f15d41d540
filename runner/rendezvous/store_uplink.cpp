// SPDX-License-Identifier: Apache-2.0
// See store_uplink.h: over TLS.
#include "runner/rendezvous/store_uplink.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>

#include "runner/core/clock.h"
#include "runner/rendezvous/wire/store_channel.h"

namespace muster {
namespace {

constexpr double kPatience = 5;  // seconds of one try; less than a rank waits for an answer
constexpr double kPause = 1;     // seconds after a failed one in which all requests get its error

class TlsUplink : public StoreUplink {
 public:
  TlsUplink(StoreRelayOptions options, Fd epoll) : options_(std::move(options)), epoll_(std::move(epoll)) {}

  /// The server's thread waits for it: until it has succeeded nothing else can be done for anybody.
  Status connect(double now) override {
    if (channel_) return {};
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

  [[nodiscard]] bool connected() const override { return channel_.has_value(); }
  void put(const StoreRequest& request) override { channel_->put(request); }
  Status proceed(std::vector<StoreResponse>& answers) override {
    if (!channel_) return {};
    Status status = channel_->write();
    if (status.ok()) status = channel_->read(answers);
    if (!status.ok()) channel_.reset();  // its descriptor leaves the epoll with it
    watch();
    return status;
  }
  [[nodiscard]] int descriptor() const override { return epoll_.get(); }
  [[nodiscard]] size_t backlog() const override { return channel_ ? channel_->backlog() : 0; }
  void stop() override { stopping_ = true; }

 private:
  void watch() {
    if (!channel_ || watchedForRoom_ == (channel_->backlog() > 0)) return;
    watchedForRoom_ = !watchedForRoom_;
    epoll_event event{};
    event.events = EPOLLIN | (watchedForRoom_ ? uint32_t{EPOLLOUT} : 0);
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, channel_->fd(), &event);
  }

  StoreRelayOptions options_;
  Fd epoll_;  ///< watches the connection, whichever it is
  std::optional<StoreChannel> channel_;
  bool watchedForRoom_ = false;
  std::atomic<bool> stopping_{false};
  Error refused_;           ///< why there is no connection
  double tryAgainAt_ = -1;  ///< until then nobody waits for another try
};

}  // namespace

Result<std::unique_ptr<StoreUplink>> makeStoreUplink(StoreRelayOptions options) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return Error{ErrorCode::kIo, "cannot make an epoll: " + errnoText(errno), "store"};
  return std::unique_ptr<StoreUplink>(std::make_unique<TlsUplink>(std::move(options), std::move(epoll)));
}

}  // namespace muster
