// SPDX-License-Identifier: Apache-2.0
// Node-by-node matrices: what was measured between a pair, as a table that needs no script.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/html/page/view.h"
#include "runner/record/record.h"

namespace muster {

/// One metric between pairs; both halves of the matrix show the same value.
struct HeatMap {
  std::string title;  ///< "pair_bandwidth, rail=all"
  std::string unit;
  bool higherIsBetter = true;
  std::vector<std::string> names;                      ///< in natural order: n2 before n10
  std::map<std::pair<size_t, size_t>, double> values;  ///< (row, column), row < column: the worst sample
  double typical = 0;                                  ///< median over the pairs
  [[nodiscard]] double shareOf(double value) const;    ///< of the typical one; above 1 is better
  [[nodiscard]] double worstShare() const;
};

/// A map of each metric of the stage whose measurements carry labels `a` and `b`, by their other labels; the
/// one with the slowest pair first. `dropped` counts those beyond 4 and those of more than 64 names.
std::vector<HeatMap> heatMapsOf(const StageRecord& stage, size_t& dropped);

void addHeatMaps(View& stageView, const StageRecord& stage);

}  // namespace muster
