// SPDX-License-Identifier: Apache-2.0
// Estimates how much external CPU load slows a healthy device.
#include "runner/judge/external_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/units.h"

namespace muster {
namespace {

constexpr double kHoldsUpAll = 0.5;  ///< share of the CPU time from which on it explains any wait for others

/// The load that the compared value shows: the median of samples follows the load at half of the time, the
/// worst stretch of time the worst load.
double loadOf(const Expectation& e, const Group& group, const CheckResult& result, const ExternalLoad& load) {
  if (e.comparesStability() || result.observed != comparedStatistic(e, group, group.last())) return load.peak;
  if (e.statistic == "median") return load.median;
  return e.statistic == "mean" ? load.mean : load.peak;
}

/// The largest cv of values between `attainable` and 1.
double cvBetween(double attainable) {
  return (1 - attainable) / (2 * std::sqrt(attainable));
}

}  // namespace

double attainableUnderLoad(double share) {
  constexpr double kStallsThreads = 0.25, kStalled = 0.01;
  return share < kStallsThreads ? (1 - share) * (1 - share / 2) : kStalled;
}

std::string explainedByLoad(const Expectation& e, const Group& group, const CheckResult& result,
                            const ExternalLoad& load, bool together) {
  const bool rate = group.unit.ends_with("/s");
  if (!rate && group.unit != "s") return "";
  const double share = loadOf(e, group, result, load);
  const double attainable = attainableUnderLoad(share);
  if (!(share > 0)) return "";
  const bool heldUp = together && share >= kHoldsUpAll;
  bool explained = false;
  switch (e.kind) {
    case CheckKind::kMin:
    case CheckKind::kMax:
    case CheckKind::kBaseline:
    case CheckKind::kWithin:
    case CheckKind::kOfPeak:
      explained =
          rate ? result.observed < result.limit && (heldUp || result.observed / attainable >= result.limit)
               : result.observed > result.limit && (heldUp || result.observed * attainable <= result.limit);
      break;
    case CheckKind::kCvMax:
      explained = heldUp || result.observed <= result.limit + cvBetween(attainable);
      break;
    case CheckKind::kDropMax:
      explained = heldUp || result.observed <= result.limit + (1 - attainable);
      break;
    case CheckKind::kEquals:
    case CheckKind::kOneOf:
    case CheckKind::kContains:
    case CheckKind::kExcludes:
    case CheckKind::kPredicate:
      break;
  }
  if (!explained) return "";
  return fmt::format("external load ({}) took {} of the CPU time, which explains the miss", load.by,
                     formatQuantity(share, "ratio", 2));
}

}  // namespace muster
