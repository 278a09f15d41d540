// SPDX-License-Identifier: Apache-2.0
// Which bars a stage gets, and which rows are points of a curve instead.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "reports/html/plots/stage_table.h"

namespace muster {

inline constexpr size_t kSweepSizes = 4;  ///< from which on a sweep is drawn as a curve

/// The message size at which a rate or time was measured that curves are drawn of; 0: it is none of them.
double sweptSize(const Measurement& m);

/// Metrics that are drawn as curves over message size.
std::set<std::string> sweptMetrics(const StageRecord& stage);

/// SVG of each bar plot of the stage; the ones with deviations first. `dropped` counts those beyond 24, which
/// stay in the table.
std::vector<std::string> stagePlots(const StageRecord& stage, const StageTable& table, size_t& dropped);

/// The bars of every device for the metric and case of `verdict`; empty when there is nothing numeric to
/// draw.
std::string plotAround(const StageTable& table, const Verdict& verdict);

}  // namespace muster
