// SPDX-License-Identifier: Apache-2.0
// Which plots a stage gets: bars per device, or lines over message size.
#pragma once

#include <string>
#include <vector>

#include "reports/html/stage_table.h"

namespace muster {

/// SVG of each plot of the stage; the ones with deviations first. `dropped` counts those beyond 24, which
/// stay in the table.
std::vector<std::string> stagePlots(const StageTable& table, size_t& dropped);

/// The bars of every device for the metric and case of `verdict`; empty when there is nothing numeric to
/// draw.
std::string plotAround(const StageTable& table, const Verdict& verdict);

}  // namespace muster
