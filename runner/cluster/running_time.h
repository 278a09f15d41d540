// SPDX-License-Identifier: Apache-2.0
// Time in which this process ran: what a judge of others may count against them.
#pragma once

#include <algorithm>
#include <mutex>

#include "runner/core/clock.h"

namespace muster {

/// Seconds of a clock without the times in which this process was stopped (SIGSTOP, a suspended virtual
/// machine, no CPU time at all). Somebody must call now() more often than every `longestTick` seconds: longer
/// gaps between two calls are stops. For several threads.
class RunningTime {
 public:
  RunningTime(const Clock& clock, double longestTick)
      : clock_(clock), longestTick_(longestTick), last_(clock.now()), ran_(last_) {}

  [[nodiscard]] double now() {
    const std::lock_guard lock(mutex_);
    const double at = clock_.now();
    const double gap = at - last_;
    if (gap <= 0) return ran_;
    last_ = at;
    ran_ += std::min(gap, longestTick_);
    if (gap > longestTick_ && gap >= longest_.seconds) longest_ = {gap, ran_};
    return ran_;
  }

  struct Stop {
    double seconds = 0;  ///< 0: there was none
    double until = 0;    ///< in running time
  };
  /// The longest stop since forget().
  [[nodiscard]] Stop longestStop() {
    (void)now();
    const std::lock_guard lock(mutex_);
    return longest_;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    longest_ = {};
  }

 private:
  const Clock& clock_;
  double longestTick_;
  std::mutex mutex_;  // guards all below
  double last_;
  double ran_;
  Stop longest_;
};

}  // namespace muster
