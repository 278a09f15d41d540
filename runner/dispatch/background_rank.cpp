// SPDX-License-Identifier: Apache-2.0
// A rank that runs beside stages; see BackgroundRank in supervisor.h.
#include <fmt/format.h>
#include <sys/epoll.h>

#include "runner/dispatch/host_process.h"

namespace muster {
namespace {

/// One host whose descriptors are gathered in an epoll descriptor, so that the caller has one to wait for.
class Background : public BackgroundRank {
 public:
  Background(std::unique_ptr<HostProcess> host, Fd epoll)
      : host_(std::move(host)), epoll_(std::move(epoll)) {}

  Status watch() {
    std::vector<pollfd> fds;
    host_->appendPollFds(fds);
    for (const pollfd& fd : fds) {
      epoll_event event{};
      event.events = EPOLLIN;
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.fd, &event) != 0)
        return Error{ErrorCode::kInternal, "cannot watch a background rank: " + errnoText(errno), ""};
    }
    return {};
  }

  void poll() override { host_->service(); }

  RankEnd stop() override {
    host_->service();
    host_->stop(StopReason::kAsked);
    while (!host_->ended()) {
      epoll_event event;
      epoll_wait(epoll_.get(), &event, 1, host_->closing() ? 1 : 20);
      host_->service();
    }
    return host_->end();
  }

  [[nodiscard]] bool running() const override { return !host_->ended(); }
  [[nodiscard]] int fd() const override { return epoll_.get(); }

 private:
  std::unique_ptr<HostProcess> host_;
  Fd epoll_;
};

}  // namespace

Result<std::unique_ptr<BackgroundRank>> BackgroundRank::start(const RankSpec& spec,
                                                              const GroupOptions& options) {
  MUSTER_TRY(HostJob job, rankJob(spec, options));
  MUSTER_TRY(auto host, HostProcess::start(std::move(job), options.grace, options.onFrame));
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid())
    return Error{ErrorCode::kInternal, "cannot watch a background rank: " + errnoText(errno), ""};
  auto background = std::make_unique<Background>(std::move(host), std::move(epoll));
  MUSTER_CHECK_OK(background->watch());
  return std::unique_ptr<BackgroundRank>(std::move(background));
}

}  // namespace muster
