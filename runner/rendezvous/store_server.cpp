// SPDX-License-Identifier: Apache-2.0
// See store_server.h: the thread, and how it starts and ends.
#include "runner/rendezvous/store_server.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "runner/core/text.h"
#include "runner/rendezvous/listener.h"
#include "runner/rendezvous/store_key.h"
#include "runner/rendezvous/store_loop.h"

namespace muster {
namespace {

/// Lets this process have as many descriptors as the store may need, where the hard limit allows it.
void allowDescriptors(const StoreLimits& limits) {
  constexpr rlim_t kOthers = 256;
  const rlim_t wanted = limits.connections + limits.strangers + kOthers;
  rlimit now{};
  if (getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur >= wanted) return;
  now.rlim_cur = std::min(wanted, now.rlim_max);
  setrlimit(RLIMIT_NOFILE, &now);
}

class RunningServer : public StoreServer {
 public:
  RunningServer(std::unique_ptr<StoreLoop> loop, Fd wake, std::string host, uint16_t port)
      : loop_(std::move(loop)), wake_(std::move(wake)), host_(std::move(host)), port_(port), thread_([this] {
          loop_->run();
        }) {}

  ~RunningServer() override {
    const uint64_t one = 1;
    while (write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  [[nodiscard]] uint16_t port() const override { return port_; }
  [[nodiscard]] const std::string& host() const override { return host_; }
  [[nodiscard]] StoreCounts counts() const override { return loop_->counts(); }

 private:
  std::unique_ptr<StoreLoop> loop_;
  Fd wake_;
  std::string host_;
  uint16_t port_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::start(const StoreServerOptions& options) {
  MUSTER_CHECK_OK(checkToken(options.token));
  allowDescriptors(options.limits);
  MUSTER_TRY(Listener listener, listenOn(options.bind, options.port));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return Error{ErrorCode::kIo, "cannot make an event: " + errnoText(errno), "store"};
  const uint16_t port = listener.port;
  MUSTER_TRY(auto loop,
             StoreLoop::make(std::move(listener.socket), wake.get(), options.token, options.limits));
  return std::unique_ptr<StoreServer>(
      new RunningServer(std::move(loop), std::move(wake), std::move(listener.host), port));
}

std::string turnedAway(const StoreCounts& now, const StoreCounts& earlier) {
  std::vector<std::string> kinds;
  uint64_t all = 0;
  const auto count = [&](uint64_t StoreCounts::*of, const char* what) {
    const uint64_t more = now.*of - earlier.*of;
    if (more > 0) kinds.push_back(fmt::format("{} {}", more, what));
    all += more;
  };
  count(&StoreCounts::noTls, "without TLS");
  count(&StoreCounts::noToken, "with no token or another one");
  count(&StoreCounts::altered, "with altered or replayed bytes");
  count(&StoreCounts::late, "too slow");
  count(&StoreCounts::malformed, "that broke the protocol");
  count(&StoreCounts::crowdedOut, "too many at a time");
  if (all == 0) return "";
  return fmt::format("the rendezvous turned away {} connection{}: {}", all, all == 1 ? "" : "s",
                     join(kinds, ", "));
}

}  // namespace muster
