// SPDX-License-Identifier: Apache-2.0
// Computes the bounds of numeric expectations.
#include "runner/judge/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

/// Slack for limits that were computed: 97 must meet "within 3% of 100" whatever 100 x 0.97 rounds to.
constexpr double kRounding = 1e-12;

double loosenedDown(double value) {
  return value - std::fabs(value) * kRounding;
}
double loosenedUp(double value) {
  return value + std::fabs(value) * kRounding;
}

/// "at most 85 °C"; nothing is below no, nor above yes.
std::string limitText(const Expectation& e, const std::string& unit) {
  const bool least = e.kind == CheckKind::kMin;
  std::string limit = formatQuantity(e.limit, unit);
  if (unit == "bool" && e.limit == (least ? 1 : 0)) return limit;
  return (least ? "at least " : "at most ") + limit;
}

/// Not worse than `reference` by more than `tolerance`, in the direction that is bad for the metric.
Bound around(double reference, double tolerance, const Group& group, const std::string& name) {
  const double low = reference - std::fabs(reference) * tolerance;
  const double high = reference + std::fabs(reference) * tolerance;
  const std::string basis = fmt::format("within {} of {}", formatQuantity(tolerance, "ratio"), name);
  Bound bound;
  if (group.direction != Direction::kLower) bound.low = loosenedDown(low);
  if (group.direction != Direction::kHigher) bound.high = loosenedUp(high);
  if (group.direction == Direction::kHigher)
    bound.text = fmt::format("at least {} ({})", formatQuantity(low, group.unit), basis);
  else if (group.direction == Direction::kLower)
    bound.text = fmt::format("at most {} ({})", formatQuantity(high, group.unit), basis);
  else
    bound.text = fmt::format("{} to {} ({})", formatQuantity(low, group.unit),
                             formatQuantity(high, group.unit), basis);
  return bound;
}

Result<Bound> peerBound(const Expectation& e, const Group& group, const Peers& peers) {
  const char* place = e.peers == PeerGroup::kNode ? "node" : "fleet";
  if (peers.values.size() < 2 && peers.singleDevice)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the {} has only one device, so there is no peer to compare with", place), ""};
  if (peers.values.size() < 2)
    return Error{ErrorCode::kProtocol, fmt::format("no peer in the {} was measured", place), ""};
  if (peers.values.size() > 2) {
    const double median = medianOf(peers.values);
    return around(median, e.tolerance, group,
                  fmt::format("the {} median {}", place, formatQuantity(median, group.unit)));
  }
  // The median of two lies between them and would excuse half of the gap.
  const bool lower = group.direction == Direction::kLower;
  const double better =
      lower ? std::min(peers.values[0], peers.values[1]) : std::max(peers.values[0], peers.values[1]);
  return around(better, e.tolerance, group,
                fmt::format("the better of two, {}", formatQuantity(better, group.unit)));
}

Result<Bound> peakBound(const Expectation& e, const Group& group, const JudgeContext& context) {
  if (group.peak.empty())
    return Error{ErrorCode::kProtocol, "the metric has no theoretical peak; use min or baseline", ""};
  const std::string from = context.peaksFrom.empty() ? "the profile" : context.peaksFrom;
  const auto at = context.peaks.find(group.peak);
  if (at == context.peaks.end())
    return Error{ErrorCode::kProtocol,
                 fmt::format("no peak \"{}\" is known from {}; {}", printable(group.peak, 80), from,
                             group.peak.starts_with("network_bandwidth") || group.peak == "rail_bandwidth" ||
                                     group.peak == "rails"
                                 ? "state the network between nodes: --set network.rails=8 --set "
                                   "\"network.rail_bandwidth=50 GB/s\", or both peaks in the profile"
                                 : "add it to the profile or use min"),
                 ""};
  if (!(at->second > 0) || !std::isfinite(at->second))
    return Error{ErrorCode::kProtocol,
                 fmt::format("the peak \"{}\" from {} is not above 0", printable(group.peak, 80), from), ""};
  Bound bound;
  const double limit = e.limit * at->second;
  bound.low = loosenedDown(limit);
  bound.text = fmt::format("at least {} ({} of the peak {})", formatQuantity(limit, group.unit),
                           formatQuantity(e.limit, "ratio"), formatQuantity(at->second, group.unit));
  return bound;
}

}  // namespace

bool sameFigure(double a, double b) {
  return a == b || std::fabs(a - b) <= kRounding * std::max(std::fabs(a), std::fabs(b));
}

BoundDistance distanceTo(const Bound& bound, double observed) {
  const auto share = [](double distance, double limit) {
    return limit == 0 ? kNaN : distance / std::fabs(limit);
  };
  const BoundDistance low{observed >= bound.low, bound.low, share(observed - bound.low, bound.low)};
  const BoundDistance high{observed <= bound.high, bound.high, share(bound.high - observed, bound.high)};
  if (std::isinf(bound.high)) return low;
  if (std::isinf(bound.low)) return high;
  if (low.met != high.met) return low.met ? high : low;
  return observed - bound.low < bound.high - observed ? low : high;
}

Result<Bound> boundOf(const Expectation& e, const Group& group, const JudgeContext& context,
                      const Peers& peers) {
  const std::string limit = formatQuantity(e.limit, group.unit);
  Bound bound;
  switch (e.kind) {
    case CheckKind::kMin:
      bound.low = e.limit;
      bound.text = limitText(e, group.unit);
      return bound;
    case CheckKind::kMax:
      bound.high = e.limit;
      bound.text = limitText(e, group.unit);
      return bound;
    case CheckKind::kBaseline:
      return around(e.limit, e.tolerance, group, "the baseline " + limit);
    case CheckKind::kWithin:
      return peerBound(e, group, peers);
    case CheckKind::kOfPeak:
      return peakBound(e, group, context);
    default:
      return Error{ErrorCode::kInternal, "an expectation without a bound", ""};
  }
}

}  // namespace muster
