// SPDX-License-Identifier: Apache-2.0
// Two runs of one node beside each other: parts, facts and figures that differ.
#pragma once

#include "reports/history/store.h"

namespace muster::history {

/// A fact that differs; an empty value: it was not there.
struct FactChange {
  std::string device, name, before, after;
};

/// A figure that differs by more than its samples explain.
struct FigureChange {
  Point before, after;
  double change = 0;  ///< (after - before) / |before|
  bool worse = false;
};

struct Comparison {
  Run before, after;
  std::vector<FactChange> facts;
  std::vector<FigureChange> figures;  ///< worsened first, the largest first
  size_t alike = 0;                   ///< figures within the noise
  size_t onlyBefore = 0;              ///< figures that one of them lacks
  size_t onlyAfter = 0;
};

/// Compares by place (device id). A figure counts as changed beyond 2% and four standard errors of its own
/// samples.
Result<Comparison> compareRuns(Store& store, const Run& before, const Run& after);

}  // namespace muster::history
