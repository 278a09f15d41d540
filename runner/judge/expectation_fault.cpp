// SPDX-License-Identifier: Apache-2.0
// Expectations that nothing could miss, or nothing could meet by design: these never pass in silence. See
// check.h.
#include <fmt/format.h>

#include <cmath>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/check.h"

namespace muster {
namespace {

/// Units whose figures are never below 0, so that a minimum of 0 is met by a device that does nothing.
bool startsAtZero(const std::string& unit) {
  return unit != "degC" && unit != "ratio" && unit != "text" && !unit.empty();
}

std::string limitFault(const Expectation& e) {
  if (!std::isfinite(e.limit)) return "its limit is not a finite number";
  if (e.kind == CheckKind::kMin && e.limit <= 0 && startsAtZero(e.unit))
    return fmt::format("a minimum of {} can never fail", formatQuantity(e.limit, e.unit));
  if (e.kind == CheckKind::kMax && e.unit == "bool" && e.limit >= 1)
    return "a maximum of true can never fail";
  if (e.kind == CheckKind::kBaseline && e.limit <= 0)
    return fmt::format("a baseline of {} compares with nothing", formatQuantity(e.limit, e.unit));
  if (e.kind == CheckKind::kOfPeak && (e.limit <= 0 || e.limit > 1))
    return fmt::format("a share of {} of the peak is invalid; required above 0% and at most 100%",
                       formatQuantity(e.limit, "ratio"));
  if (e.kind == CheckKind::kDropMax && (e.limit <= 0 || e.limit >= 1))
    return fmt::format("a drop of at most {} is invalid; required: above 0% and below 100%",
                       formatQuantity(e.limit, "ratio"));
  if (e.kind == CheckKind::kCvMax && e.limit <= 0)
    return "a coefficient of variation of at most 0% or less cannot be met";
  return "";
}

bool isShare(double value) {
  return value >= 0 && value < 1;
}

}  // namespace

std::string expectationFault(const Expectation& e) {
  if (e.metric.empty()) return "it names no metric";
  if (const std::string fault = limitFault(e); !fault.empty()) return fault;
  const bool relative = e.kind == CheckKind::kBaseline || e.kind == CheckKind::kWithin;
  if (relative && !isShare(e.tolerance))
    return fmt::format("its tolerance of {} is invalid; required from 0% to below 100%",
                       formatQuantity(e.tolerance, "ratio"));
  if (!isShare(e.warnBand))
    return fmt::format("its warning band of {} is invalid; required from 0% to below 100%",
                       formatQuantity(e.warnBand, "ratio"));
  if (e.statistic != "median" && e.statistic != "mean" && e.statistic != "min" && e.statistic != "max")
    return fmt::format("its statistic \"{}\" is none of median, mean, min, max", e.statistic);
  if (e.kind == CheckKind::kOneOf && e.allowed.empty()) return "its list of allowed values is empty";
  const bool words = e.kind == CheckKind::kContains || e.kind == CheckKind::kExcludes;
  if (words && (e.allowed.empty() || contains(e.allowed, ""))) return "it has no text to look for";
  if (e.kind == CheckKind::kEquals && e.unit == "text" && e.allowed.empty())
    return "it has no text to compare with";
  if (e.kind == CheckKind::kPredicate && e.predicate.empty()) return "its predicate is empty";
  return "";
}

}  // namespace muster
