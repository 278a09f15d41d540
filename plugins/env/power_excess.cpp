// SPDX-License-Identifier: Apache-2.0
// Which GPUs the power limit slows down far more than their peers.
#include "plugins/env/power_excess.h"

#include <map>
#include <string>

#include "runner/core/statistics.h"

namespace muster::env {

std::vector<Reading> powerExcess(const std::vector<Reading>& sample) {
  constexpr size_t kFewest = 3;
  constexpr double kShare = 0.75;  // clocks of healthy GPUs of a model under one load differ by a few percent
  std::map<std::string, double> clocks;
  std::vector<double> all;
  for (const Reading& reading : sample)
    if (reading.name == reading::kClock && !reading.device.empty()) {
      clocks[reading.device] = reading.value;
      all.push_back(reading.value);
    }
  if (all.size() < kFewest) return {};
  const double limit = kShare * medianOf(all);
  std::vector<Reading> found;
  for (const Reading& reading : sample) {
    const auto clock = clocks.find(reading.device);
    if (reading.name != reading::kThrottlePowerCap || clock == clocks.end()) continue;
    found.push_back(
        {"throttle_power_excess", "s", reading.device, clock->second < limit ? reading.value : 0, "", {}});
  }
  return found;
}

}  // namespace muster::env
