// SPDX-License-Identifier: Apache-2.0
// One expectation against the samples of one measurement: the arithmetic behind a verdict.
#pragma once

#include <string>
#include <vector>

#include "runner/judge/evidence_index.h"

namespace muster {

/// Result of a check, with the values that a verdict shows. NaN: no such value.
struct CheckResult {
  Outcome outcome = Outcome::kError;
  double observed = 0;
  std::string observedText;
  double limit = 0;
  std::string limitText;  ///< "at least 650 TFLOP/s"
  double margin = 0;
  std::string detail;      ///< "488 TFLOP/s, required at least 650 TFLOP/s (25% below)"
  bool unrelated = false;  ///< a miss that says nothing about the machine: an error
};

/// Why no measurement could be judged by `expectation`, or an empty text. A limit that nothing can miss is a
/// fault.
std::string expectationFault(const Expectation& expectation);

/// Values of the same measurement on this and the other ranks; for kWithin.
struct Peers {
  std::vector<double> values;
  bool singleDevice = false;  ///< by inventory there is nothing to compare with
};

/// Judges one attempt. `peers` is read for kWithin only. Samples with a problem are errors.
CheckResult check(const Expectation& expectation, const Group& group, const Merged& merged,
                  const JudgeContext& context, const Peers& peers);

/// What `expectation` compares of a measurement that is sampled over time, besides its statistic: the worst
/// level that lasted, where its median or mean is compared and it lies below (above, for times) that; else
/// NaN.
double worstLevel(const Expectation& expectation, const Group& group, const Merged& merged);

/// The statistic that `expectation` compares. Counts and booleans are compared by their worst sample: a
/// median would hide the one repeat in which something was wrong.
double comparedStatistic(const Expectation& expectation, const Group& group, const Merged& merged);

}  // namespace muster
