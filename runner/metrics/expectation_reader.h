// SPDX-License-Identifier: Apache-2.0
// Reads one `[[expect]]` table, of a plan or of a SKU profile, into expectations: one syntax for both.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/json_schema.h"
#include "runner/core/mistake.h"
#include "runner/metrics/catalog.h"
#include "runner/metrics/expectation.h"

namespace muster {

/// What the reader of an expectation needs to know of the file that it stands in.
struct ExpectationFrame {
  const Catalog* catalog =
      nullptr;              ///< metric names, units and labels are checked against it; nullptr: not checked
  std::string origin;       ///< "plan" or "profile h100-sxm5-80gb"
  std::string at;           ///< file:line of the table
  bool provenance = false;  ///< `source` must be given, and `remedy` where the metric has none (profiles)
  bool predicates = false;  ///< `predicate` (Lua source) is allowed (Lua plans)
  size_t copies = 1;        ///< how many stages get each expectation (lists of nodes)
};

/// What all expectations of one plan or profile may come to. Counted before `where` is expanded.
struct ExpectationBudget {
  size_t expectations = 20'000;
  size_t bytes = size_t{32} << 20;  ///< that they take in memory, their texts above all
  bool exceeded = false;            ///< told once
};

/// Told each mistake: the key it concerns ("min", "where.dtype", or "" for the table as a whole), and what
/// was found, what was wanted and the nearest valid name.
using ExpectationComplaint = std::function<void(const std::string& key, const Mistake& mistake)>;

/// Every key of an expectation's table (`set` is not among them: expectation_sets.h), and those that state a
/// limit.
const std::vector<std::string>& expectationKeys();
const std::vector<std::string>& expectationChecks();

/// The texts that one of the keys `statistic`, `severity` and `of` takes.
const std::vector<std::string>& expectationChoices(const std::string& key);
/// The range of a key that takes a share of 1: `within`, `cv_max`, `warn_band` ...
NumberRange expectationShare(const std::string& key);

/// At most so many expectations come of one list.
constexpr size_t kMostExpectations = 1000;

/// What each of the texts and lists of texts of an expectation may take: every verdict on it repeats them.
constexpr size_t kMostExpectationText = 4096;

/// The key of a text or list of `expectation` that is longer; "" where none is.
std::string overlongKey(const Expectation& expectation);

/// The expectations of one table. Keys: metric, where (labels), one or more checks (min, max, equals, one_of,
/// baseline + tolerance, within + of, of_peak, cv_max, predicate), statistic, warn_band, severity, source,
/// remedy (default: the metric's). Each check becomes one expectation; a label with a list of values, one for
/// each value. Takes them off `budget`. Every mistake is told; with any, the result is empty. Limits that can
/// never fail (a minimum of zero, a tolerance of 100%) are mistakes.
std::vector<Expectation> readExpectation(const Json& table, const ExpectationFrame& frame,
                                         ExpectationBudget& budget, const ExpectationComplaint& complain);

}  // namespace muster
