// SPDX-License-Identifier: Apache-2.0
// What the steps of learning share.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/result.h"
#include "runner/core/statistics.h"
#include "runner/sku/learn.h"
#include "runner/sku/profile.h"
#include "runner/sku/spread.h"

namespace muster {

/// Larger is better.
inline double signedFigure(const LearnGroup& group, double value) {
  return group.direction == Direction::kLower ? -value : value;
}

/// A score of fewer members is no reason to leave one out.
inline constexpr size_t kLeastScores = 8;

inline Error refusal(const std::string& message) {
  return {ErrorCode::kUsage, message, ""};
}

/// Nothing can be made of a figure that is NaN, infinite or negative: kUsage names it and its node.
Status checkFigures(const LearnInput& input);

/// kUsage where the value of a group is beyond what is physically possible.
Status checkPossible(const LearnGroup& group, const PhysicalLimit& physical, double value);

/// Six significant digits: more would be noise.
double roundedFigure(double value);

/// Writes the mark of a profile that was learned from this scenario; none where it is empty.
void markSimulated(Profile& profile, const std::string& scenario);

/// Where in its node a figure was measured: device and place.
using MeasuredPlace = std::pair<int, int>;

/// Medians, larger is better, of the places that at least kLeastScores nodes measured.
std::map<MeasuredPlace, double> placeMedians(const LearnGroup& group);

/// The figures, larger is better, less what their place differs by from all others: what is slow alike in all
/// nodes is no node's own fault.
std::vector<double> besidePlaces(const LearnGroup& group);

/// Nodes of two kinds, each of which agrees better than they all do.
struct NodeKinds {
  std::vector<int> fewer;  ///< the nodes of the smaller kind; of equal ones, of the worse
  bool worse = false;      ///< they are the worse ones
  double apart = 0;        ///< between the means of both, in sigmas within a kind
};
/// The kinds that `nodes`, values by node, larger is better, are of; nothing where they are of one kind as
/// far as can be told.
std::optional<NodeKinds> twoKinds(std::vector<std::pair<double, int>> nodes);

/// Healthy machines repeat a figure within a thousandth at best: a fleet that agrees better than that, by
/// chance or by rounding, must not get a limit that the next run misses.
inline constexpr double kSpreadFloor = 0.001;

/// The least sigma of figures whose median has this size.
inline double spreadFloor(const std::vector<double>& values) {
  return std::max(1e-300, std::fabs(medianOf(values)) * kSpreadFloor);
}

}  // namespace muster
