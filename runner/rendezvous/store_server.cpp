// SPDX-License-Identifier: Apache-2.0
// See store_server.h: the thread, and how it starts and ends.
#include "runner/rendezvous/store_server.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "runner/core/text.h"
#include "runner/rendezvous/store_loop.h"
#include "runner/rendezvous/store_relay.h"
#include "runner/rendezvous/store_state.h"
#include "runner/rendezvous/wire/listener.h"
#include "runner/rendezvous/wire/store_key.h"

namespace muster {
namespace {

/// Lets this process open as many files as the store may need. Root may raise the hard limit, too.
Status allowDescriptors(const StoreLimits& limits) {
  constexpr rlim_t kOthers = 256;
  const rlim_t required = limits.connections + limits.strangers + kOthers;
  rlimit now{};
  if (getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur >= required) return {};
  const rlimit raised{required, std::max(required, now.rlim_max)};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return {};
  return Error{ErrorCode::kIo,
               fmt::format("the rendezvous of this run needs {} open files, and this process may have {} "
                           "(hard limit); raise the limit: `ulimit -Hn {}` as root, LimitNOFILE= of the "
                           "service, or nofile in /etc/security/limits.conf",
                           required, now.rlim_max, required),
               ""};
}

class RunningServer : public StoreServer {
 public:
  RunningServer(std::unique_ptr<StoreLoop> loop, std::string host, uint16_t port)
      : loop_(std::move(loop)), host_(std::move(host)), port_(port), thread_([this] { loop_->run(); }) {}

  ~RunningServer() override {
    loop_->stop();
    thread_.join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  Result<Fd> connect(const std::string& prefix) override {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return Error{ErrorCode::kIo, "cannot make a socket pair: " + errnoText(errno), "store"};
    loop_->attach(Fd(ends[0]), prefix);
    return Fd(ends[1]);
  }
  [[nodiscard]] uint16_t port() const override { return port_; }
  [[nodiscard]] const std::string& host() const override { return host_; }
  [[nodiscard]] StoreCounts counts() const override { return loop_->counts(); }

 private:
  std::unique_ptr<StoreLoop> loop_;
  std::string host_;
  uint16_t port_;
  std::thread thread_;  // last: it uses all of the above
};

Result<std::unique_ptr<StoreServer>> run(Listener listener, const std::string& token,
                                         const StoreLimits& limits, std::unique_ptr<StoreDesk> desk) {
  MUSTER_TRY(auto loop, StoreLoop::make(std::move(listener.socket), token, limits, std::move(desk)));
  return std::unique_ptr<StoreServer>(
      new RunningServer(std::move(loop), std::move(listener.host), listener.port));
}

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::start(const StoreServerOptions& options) {
  MUSTER_CHECK_OK(checkToken(options.token));
  MUSTER_CHECK_OK(allowDescriptors(options.limits));
  MUSTER_TRY(Listener listener, listenOn(options.bind, options.port));
  return run(std::move(listener), options.token, options.limits,
             std::make_unique<StoreState>(options.limits));
}

Result<std::unique_ptr<StoreServer>> StoreServer::startLocal() {
  return run({}, "", {}, std::make_unique<StoreState>(StoreLimits()));
}

Result<std::unique_ptr<StoreServer>> StoreServer::startRelay(StoreRelayOptions options) {
  MUSTER_TRY(auto uplink, makeStoreUplink(options));
  return run({}, "", {}, std::make_unique<StoreRelay>(std::move(options), std::move(uplink)));
}

StoreLimits StoreLimits::forNodes(size_t nodes) {
  constexpr size_t kConnections = 20;                        // of a node: its runner's, its ranks'
  constexpr size_t kKeys = 1024, kMemory = size_t{1} << 18;  // of a node: 8 ranks with 128 keys of 256 bytes
  StoreLimits limits;
  limits.keys += kKeys * nodes;
  limits.memory += kMemory * nodes;
  limits.connections += kConnections * nodes;
  limits.strangers += kConnections * nodes;  // they may all come at the same moment
  return limits;
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
  count(&StoreCounts::cut, "that hung up before proving the token");
  count(&StoreCounts::crowdedOut, "too many at a time");
  count(&StoreCounts::full, "beyond its limit of connections");
  std::vector<std::string> parts;
  if (all > 0)
    parts.push_back(fmt::format("the rendezvous turned away {} connection{}: {}", all, all == 1 ? "" : "s",
                                join(kinds, ", ")));
  if (const uint64_t more = now.noRoom - earlier.noRoom; more > 0)
    parts.push_back(fmt::format("the rendezvous refused {} request{}: its keys or memory are used up", more,
                                more == 1 ? "" : "s"));
  if (now.noFiles > earlier.noFiles)
    parts.emplace_back("the rendezvous made connections wait: this process has no file descriptor left");
  return join(parts, "; ");
}

}  // namespace muster
