// SPDX-License-Identifier: Apache-2.0
// Finds the reading in which a device differs from its peers most plainly.
#include <fmt/format.h>

#include <cmath>

#include "reports/html/page_one/page_one.h"
#include "runner/core/statistics.h"
#include "runner/core/units.h"

namespace muster {
namespace {

/// A reading that explains slow devices, in the order of how well it does.
struct Reading {
  const char* name;  ///< the end of the metric's name
  const char* words;
  double least;  ///< difference worth telling: a share, or degrees
  bool absolute;
};
constexpr Reading kReadings[] = {{".clock", "clock", 0.05, false},
                                 {".temperature", "temperature", 6, true},
                                 {".power", "power", 0.1, false}};
constexpr size_t kLeastPeers = 2;

std::string hintOf(const StageRecord& stage, const std::string& device, const Reading& reading) {
  double own = kNaN;
  std::string unit;
  std::vector<double> peers;
  for (const TelemetrySeries& series : stage.telemetry) {
    if (!series.metric.ends_with(reading.name) || series.device.empty()) continue;
    unit = series.unit;
    if (series.device == device)
      own = series.summary.median;
    else
      peers.push_back(series.summary.median);
  }
  const double typical = medianOf(peers);
  if (peers.size() < kLeastPeers || !std::isfinite(own) || !std::isfinite(typical)) return "";
  const double distance = std::fabs(own - typical) / (reading.absolute ? 1 : std::fabs(typical));
  if (!(distance >= reading.least)) return "";
  return fmt::format("its {} was {}, its peers' {}", reading.words, formatQuantity(own, unit, 3),
                     formatQuantity(typical, unit, 3));
}

}  // namespace

std::string telemetryHint(const StageRecord& stage, const std::string& device) {
  if (device.empty()) return "";
  for (const Reading& reading : kReadings)
    if (std::string hint = hintOf(stage, device, reading); !hint.empty()) return hint;
  return "";
}

}  // namespace muster
