// SPDX-License-Identifier: Apache-2.0
// Adds up what counters grew by within a sliding window.
#include "plugins/env/recent_growth.h"

#include <algorithm>

namespace muster::env {

namespace {

struct Rate {
  const char* counter;
  const char* name;
  const char* unit;
  double window;  ///< seconds
};
constexpr Rate kRates[] = {{reading::kThrottleSoftware, "throttle_software_share", "ratio", 1},
                           {reading::kNvlinkCrcErrors, "nvlink_crc_per_second", "count", 1},
                           {reading::kPcieReplay, "pcie_replays_per_minute", "count", 60}};

}  // namespace

std::vector<Reading> RecentGrowth::rates(const std::vector<Reading>& sample, double time) {
  const double begin = last_.value_or(time);
  last_ = time;
  std::vector<Reading> found;
  for (const Reading& reading : sample)
    for (const Rate& rate : kRates) {
      if (reading.name != rate.counter) continue;
      std::deque<Step>& steps = steps_[reading.name + "\n" + reading.device];
      steps.push_back({begin, reading.value * rate.window / std::max(time - begin, rate.window)});
      while (steps.size() > 1 && steps.front().begin < time - rate.window) steps.pop_front();
      double sum = 0;
      for (const Step& step : steps) sum += step.growth;
      found.push_back({rate.name, rate.unit, reading.device, sum, reading.text, {}});
    }
  return found;
}

}  // namespace muster::env
