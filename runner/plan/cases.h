// SPDX-License-Identifier: Apache-2.0
// A stage's parameters and matrix, checked against what the test declares, as the list of its cases.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/plan/document.h"

namespace muster {

/// What a whole plan may come to. Counted before anything is expanded.
struct CaseBudget {
  size_t cases = 10'000;
  size_t bytes = size_t{16} << 20;  ///< of all cases' parameters, written as JSON
};

/// The cases of the stage at `pointer` ("/stage/2"): one for each combination of the matrix. Takes them off
/// `budget`. Nothing when there is a mistake; each one is told.
std::vector<Case> readCases(const PlanDocument& document, const std::string& pointer,
                            const std::string& stage, const TestSpec& test, CaseBudget& budget,
                            Diagnostics& diagnostics);

/// A parameter's value as labels and case ids write it: texts as they are, list items joined with commas.
std::string paramText(const Json& value);

}  // namespace muster
