// SPDX-License-Identifier: Apache-2.0
// Verdicts: the outcome of one expectation on one measurement, and the counts that must balance.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runner/metrics/expectation.h"
#include "runner/metrics/measurement.h"

namespace muster {

/// DESIGN's outcome table, in the order in which reports list them.
enum class Outcome {
  kFail,
  kError,
  kFlaky,
  kWarn,
  kUnjudged,
  kSkipped,
  kWaived,
  kDeferred,
  kElsewhere,
  kPass,
};
inline constexpr int kOutcomeCount = 10;

const char* outcomeName(Outcome outcome);
Result<Outcome> outcomeFromName(std::string_view name);

/// Result of one attempt, kept when there were several.
struct AttemptOutcome {
  int attempt = 1;
  Outcome outcome = Outcome::kPass;
  double observed = 0;
};

/// One judged slot: an expectation on a measurement, an unjudged measurement, or a case or stage without
/// measurement.
struct Verdict {
  Outcome outcome = Outcome::kError;
  std::string stage;
  std::string caseId;
  std::string metric;  ///< empty when the verdict is about a whole case or stage
  std::string device;
  int rank = -1;
  Labels labels;
  std::optional<Expectation> expectation;
  double observed = 0;       ///< the compared statistic in base units; NaN when there is none
  std::string observedText;  ///< "482 TFLOP/s", or the text value
  double limit = 0;       ///< the limit in force, after baseline, peers or peak were resolved; NaN when none
  std::string limitText;  ///< "at least 650 TFLOP/s"
  double margin = 0;      ///< share of the limit; negative: missed; NaN when it has no meaning
  std::string detail;     ///< one line for people: what, where, by how much, or why it could not be measured
  std::string remedy;
  bool required = true;  ///< skipped and required blocks acceptance
  std::vector<AttemptOutcome> attempts;
};

/// Who a verdict is about, to begin its line: the device, else the rank or the node, with the labels that
/// tell it from its like: "gpu3 (dtype=bf16): ", "node (process=stress-ng): ".
std::string subjectText(const Verdict& verdict);

/// " (25% below)", or nothing where the distance is none or has no meaning.
std::string distanceText(double observed, double limit);

/// The line of a figure that was compared with a bound: "gpu3: 482 TFLOP/s, required at least 650 TFLOP/s
/// (26% below)". Of the verdict's texts it needs observedText and limitText.
std::string comparisonText(const Verdict& verdict);

Json toJson(const Verdict& verdict);
/// With `expectation` in place of the verdict's own; null: without one.
Json toJson(const Verdict& verdict, Json expectation);
Result<Verdict> verdictFromJson(const Json& json, const std::string& path);

/// Counts by outcome. `expected` is counted apart, from what was to be judged; balanced() is the accounting
/// identity.
struct Accounting {
  size_t expected = 0;
  std::array<size_t, kOutcomeCount> counts{};
  size_t requiredSkips = 0;  ///< of the skipped ones, those that block

  void add(const Verdict& verdict);
  [[nodiscard]] size_t of(Outcome outcome) const { return counts[static_cast<size_t>(outcome)]; }
  [[nodiscard]] size_t total() const;
  [[nodiscard]] bool balanced() const { return total() == expected; }
};

}  // namespace muster
