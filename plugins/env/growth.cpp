// SPDX-License-Identifier: Apache-2.0
// Turns cumulative counters into what they grew by, sample by sample and in total.
#include "plugins/env/growth.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::env {

namespace {

std::string keyOf(const Reading& reading) {
  return reading.name + "\n" + reading.device + "\n" + labelsText(reading.labels);
}

bool countsLogLines(const std::string& name) {
  return name.starts_with("xid_") || name.starts_with("sxid_");
}

}  // namespace

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

bool isTotal(const std::string& metric) {
  return isCumulative(metric) || metric == "throttle_power_excess";
}

void Growth::resume(const Json& counts) {
  for (const auto& [key, value] : counts.items())
    if (value.is_number()) last_[key] = {{"", "count", "", value.get<double>(), "", {}}, true};
}

std::optional<Reading> Growth::since(Reading reading) {
  if (!isCumulative(reading.name)) return reading;
  const auto [entry, first] = last_.try_emplace(keyOf(reading), Counter{reading, false});
  Counter& counter = entry->second;
  if (first && !startsAtZero_) return std::nullopt;
  const double before = first ? 0 : counter.reading.value;
  const bool resumed = counter.resumed;
  counter = {reading, false};
  const double anew = resumed ? 0 : reading.value;
  reading.value = reading.value >= before ? reading.value - before : anew;
  if (reading.value == 0) reading.text.clear();  // what it says of the counter is old news
  return reading;
}

Json Growth::counts(bool withLog) const {
  Json counts = Json::object();
  for (const auto& [key, counter] : last_) {
    const bool logged = countsLogLines(key);
    if (counter.reading.unit != "count" || (logged && !withLog)) continue;
    counts[key] = logged ? 0 : counter.reading.value;
  }
  return counts;
}

std::vector<Reading> Totals::add(std::vector<Reading> sample) {
  for (Reading& reading : sample) {
    if (!isTotal(reading.name)) continue;
    const auto [entry, first] = totals_.try_emplace(keyOf(reading), reading);
    Reading& total = entry->second;
    if (!first && reading.value > 0) {
      total.value += reading.value;
      total.text = reading.text;
    }
    reading.value = total.value;
    reading.text = total.text;
  }
  return sample;
}

}  // namespace muster::env
