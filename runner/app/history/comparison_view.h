// SPDX-License-Identifier: Apache-2.0
// Runs and comparisons on the terminal.
#pragma once

#include <string>

#include "reports/history/compare.h"

namespace muster {

inline constexpr size_t kMostShown = 40;  ///< of one list; --json has all

/// "#12 2026-11-21T03:10:00Z n17 accepted node-quick, h100-sxm5-80gb".
std::string runLine(const history::Run& run);

/// "gemm compute.gemm_throughput dtype=bf16".
std::string figureText(const history::FigureName& figure);

/// "684.2 TFLOP/s -> 650 TFLOP/s (-5.0%)".
std::string movedText(const history::FigureName& figure, double before, double after);

void printComparison(const history::Comparison& comparison);

/// Names stages that ran with other parameters; prints nothing where there is none.
void printOtherStages(const std::set<std::string>& stages);

}  // namespace muster
