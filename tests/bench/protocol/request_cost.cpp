// SPDX-License-Identifier: Apache-2.0
// Requests of many clients to a real store over TLS, and the CPU time of its thread.
#include "tests/bench/protocol/request_cost.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/wire/store_channel.h"
#include "runner/rendezvous/wire/store_key.h"
#include "tests/bench/protocol/fibers.h"

namespace muster::bench {
namespace {

/// CPU seconds of all other threads of this process: there is only the store's.
double storeSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9 - threadSeconds();
}

/// Waits until the store's thread does nothing.
void awaitIdle() {
  constexpr double kNothing = 50e-6;  // seconds in one look; reading the clocks takes some, too
  double before = storeSeconds(), used = 1;
  while (used > kNothing) {
    poll(nullptr, 0, 10);
    const double now = storeSeconds();
    used = now - std::exchange(before, now);
  }
}

/// Asks on all connections and waits for all answers; the store's seconds for one request before the last,
/// and in all.
template <typename Make>
Result<std::pair<double, double>> askAll(std::vector<StoreChannel>& channels, int rounds, const Make& make) {
  double asked = 0, answered = 0;
  for (int round = 0; round < rounds; ++round) {
    const double begin = storeSeconds();
    for (size_t i = 0; i < channels.size(); ++i) {
      if (i + 1 == channels.size()) {
        awaitIdle();
        asked += storeSeconds() - begin;
      }
      channels[i].put(make(static_cast<int>(i), round));
      MUSTER_CHECK_OK(channels[i].write());
    }
    for (StoreChannel& channel : channels)
      for (std::vector<StoreResponse> answers; answers.empty();) {
        pollfd socket{channel.fd(), POLLIN, 0};
        poll(&socket, 1, -1);
        MUSTER_CHECK_OK(channel.read(answers));
      }
    answered += storeSeconds() - begin;
  }
  const auto count = static_cast<double>(rounds) * static_cast<double>(channels.size());
  return std::pair{asked / count, answered / count};
}

}  // namespace

Result<StoreCosts> measureStoreCosts(int connections, int rounds) {
  StoreServerOptions server;
  server.token = "a secret of this measurement, of 32 and more characters";
  server.limits = StoreLimits::forNodes(static_cast<size_t>(connections));
  MUSTER_TRY(const auto store, StoreServer::start(server));
  const StoreAddress address{"127.0.0.1", store->port()};
  StoreCosts costs;
  std::vector<StoreChannel> channels;
  const double begin = storeSeconds();
  for (int i = 0; i < connections; ++i) {
    MUSTER_TRY(auto channel, StoreChannel::open(address, "muster/", storeKey(server.token, "muster/"),
                                                systemClock().now() + 10, [] { return false; }));
    channels.push_back(std::move(channel));
  }
  costs.proof = (storeSeconds() - begin) / connections;
  MUSTER_TRY(const auto heartbeats, askAll(channels, rounds, [](int node, int round) {
               StoreRequest request;
               request.op = StoreOp::kSet;
               request.key = fmt::format("muster/status/{}/beat", node);
               request.value = std::to_string(round);
               return request;
             }));
  costs.heartbeat = heartbeats.second;
  MUSTER_TRY(const auto barriers, askAll(channels, rounds, [&](int node, int /*round*/) {
               StoreRequest request;
               request.op = StoreOp::kBarrier;
               request.key = "muster/walk/1/0/step";
               request.timeoutMs = 60000;
               request.number = node;
               request.count = connections;
               return request;
             }));
  costs.enter = barriers.first;
  costs.answer = barriers.second - barriers.first;
  return costs;
}

}  // namespace muster::bench
