// SPDX-License-Identifier: Apache-2.0
// Two runs of one node beside each other: parts, facts and figures that differ.
#pragma once

#include <set>

#include "reports/history/store/store.h"

namespace muster::history {

inline constexpr double kLeastChange = 0.02;
inline constexpr double kLeastDegrees = 5;    ///< rooms differ by as much from day to day
inline constexpr double kFalseAlarms = 0.01;  ///< expected in one comparison of healthy runs

/// Whether a figure's zero is arbitrary: a share of it means nothing.
inline bool onIntervalScale(const FigureName& figure) {
  return figure.unit == "degC";
}

/// A fact that differs; an empty value: it was not there.
struct FactChange {
  std::string device, name, before, after;
};

/// A figure that differs by more than its samples explain.
struct FigureChange {
  Point before, after;
  double change = 0;  ///< (after - before) / |before|
  bool share =
      true;  ///< `change` says something: the unit's zero is none of convention, as that of degrees is
  bool worse = false;
};

struct Comparison {
  Run before, after;
  std::vector<FactChange> facts;
  std::vector<FigureChange> figures;  ///< worsened first, the largest first
  size_t alike = 0;                   ///< figures within the noise
  size_t onlyBefore = 0;              ///< figures that one of them lacks
  size_t onlyAfter = 0;
  std::set<std::string> otherStages;  ///< ran with other parameters, which are among the facts: not compared
  size_t underOther = 0;              ///< figures of these stages
};

/// Compares by place (device id). A figure counts as changed beyond 2% (a temperature: 5 degrees) and beyond
/// what healthy runs differ by: from run to run of the node, as far as other runs than `after` are kept, and
/// by the samples of these two. It is worse only where one of both is known.
Result<Comparison> compareRuns(Store& store, const Run& before, const Run& after);

/// Whether runs have most figures of the one with fewer in common, unlike jobs of different scope. The
/// numbers of their figures, as Store::figuresIn() has them.
bool measuredAlike(const std::vector<int64_t>& one, const std::vector<int64_t>& other);

}  // namespace muster::history
