// SPDX-License-Identifier: Apache-2.0
// Lua predicates of a plan, evaluated in a limited child process and handed to the judge as plain answers.
#pragma once

#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/metrics/measurement.h"

namespace muster {

/// What a predicate said of one measurement. `met` is false and `error` set when it failed, or returned no
/// boolean.
struct PredicateAnswer {
  bool met = false;
  std::string message;  ///< second value that the predicate returned, if it is a text
  std::string error;
};

/// Evaluates `source` (the text `function(m) ... end`, as kept in Expectation::predicate) on each
/// measurement: m has metric, unit, labels, samples, n, mean, median, min, max, cv, text. One child for all,
/// bounded in CPU time and memory.
Result<std::vector<PredicateAnswer>> evaluatePredicate(const std::string& source,
                                                       const std::vector<Measurement>& measurements);

}  // namespace muster
