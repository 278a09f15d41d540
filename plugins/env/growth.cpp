// SPDX-License-Identifier: Apache-2.0
// Turns cumulative counters into what they grew by, sample by sample.
#include "plugins/env/growth.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace muster::env {

bool isCumulative(const std::string& name) {
  constexpr std::array<std::string_view, 19> kNames{
      reading::kThrottleThermal,  reading::kThrottleSoftware,   reading::kThrottlePowerBrake,
      reading::kThrottlePowerCap, reading::kThrottleHardware,   reading::kEccCorrected,
      reading::kEccUncorrected,   reading::kXidFatal,           reading::kXidApplication,
      reading::kXidInformation,   reading::kSxidFatal,          reading::kSxidNonfatal,
      reading::kPcieReplay,       reading::kNvlinkErrors,       reading::kNvlinkCrcErrors,
      reading::kCgroupThrottled,  reading::kCpuThrottleThermal, "pcie_errors_uncorrected",
      "pcie_errors_corrected"};
  return name.starts_with(kRdmaReadings) || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::optional<Reading> Growth::since(Reading reading) {
  if (!isCumulative(reading.name)) return reading;
  const std::string key = reading.name + "\n" + reading.device + "\n" + labelsText(reading.labels);
  const auto [entry, first] = last_.try_emplace(key, startsAtZero_ ? 0 : reading.value);
  if (first && !startsAtZero_) return std::nullopt;
  const double before = std::exchange(entry->second, reading.value);
  reading.value = reading.value >= before ? reading.value - before : reading.value;
  if (reading.value == 0) reading.text.clear();  // what it says of the counter is old news
  return reading;
}

}  // namespace muster::env
