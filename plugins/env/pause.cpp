// SPDX-License-Identifier: Apache-2.0
// Waiting that ends early when the run is to stop.
#include "plugins/env/pause.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "runner/core/clock.h"

namespace muster::env {

bool pauseUntil(const sdk::Host& host, double until) {
  constexpr double kLook = 0.05;  // seconds between looks at the host's wish
  while (!host.cancelled()) {
    const double left = until - systemClock().now();
    if (left <= 0) return true;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kLook)));
  }
  return false;
}

}  // namespace muster::env
