// SPDX-License-Identifier: Apache-2.0
// Compares the samples of one measurement with one expectation.
#include "runner/judge/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "runner/core/digits.h"
#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/bound.h"
#include "runner/judge/series.h"

namespace muster {
namespace {

CheckResult errorResult(const std::string& detail) {
  return {Outcome::kError, kNaN, "", kNaN, "", kNaN, detail};
}

void setMissed(const Expectation& e, CheckResult& result) {
  result.unrelated = e.origin == "condition";
  result.outcome = result.unrelated                ? Outcome::kError
                   : e.severity == Severity::kWarn ? Outcome::kWarn
                                                   : Outcome::kFail;
}

/// A figure against a bound.
CheckResult compare(const Expectation& e, double observed, const Bound& bound, const std::string& unit) {
  CheckResult result = errorResult("");
  if (!std::isfinite(observed)) {
    result.detail = "the compared statistic is undefined (all samples are zero, or too large)";
    return result;
  }
  const BoundDistance distance = distanceTo(bound, observed);
  result.observed = observed;
  result.observedText = formatQuantity(observed, unit);
  result.limit = distance.limit;
  result.limitText = bound.text;
  result.margin = distance.margin;
  if (!distance.met)
    setMissed(e, result);
  else
    result.outcome = distance.margin < e.warnBand ? Outcome::kWarn : Outcome::kPass;
  // Two figures that look the same must not be said to differ: then more digits are shown.
  if (!distance.met && result.observedText == formatQuantity(distance.limit, unit))
    result.observedText = formatQuantity(observed, unit, 9);
  result.detail = fmt::format("{}, required {}{}", result.observedText, bound.text,
                              distanceText(observed, distance.limit));
  if (distance.met && result.outcome == Outcome::kWarn)
    result.detail += fmt::format("; inside the warning band of {}", formatQuantity(e.warnBand, "ratio"));
  return result;
}

/// A stretch of time below a limit counts as the drop_max in force says: on a shared CPU it only warns.
Outcome atMostAsDrops(Outcome outcome, const Group& group) {
  const bool warns = group.dropLimit->severity == Severity::kWarn;
  return warns && outcome == Outcome::kFail ? Outcome::kWarn : outcome;
}

/// The worst stretch of time against the same bound. Worse than `whole`: then it is what the verdict shows.
CheckResult worstOverTime(const Expectation& e, const Group& group, const Merged& merged, const Bound& bound,
                          CheckResult whole) {
  const double level = worstLevel(e, group, merged);
  if (!std::isfinite(level) || whole.outcome == Outcome::kError) return whole;
  CheckResult worst = compare(e, level, bound, group.unit);
  worst.outcome = atMostAsDrops(worst.outcome, group);
  if (worst.outcome >= whole.outcome) return whole;
  const auto& stretch = merged.stretch;
  worst.observedText += fmt::format(" {} (median of all samples: {})", spanText(*stretch),
                                    formatQuantity(merged.summary.median, group.unit));
  worst.detail =
      fmt::format("{}, required {}{}", worst.observedText, bound.text, distanceText(level, worst.limit));
  return worst;
}

CheckResult checkBound(const Expectation& e, const Group& group, const Merged& merged,
                       const JudgeContext& context, const Peers& peers) {
  const auto bound = boundOf(e, group, context, peers);
  if (!bound.ok()) {
    CheckResult result = errorResult(bound.error().message);
    if (bound.error().code == ErrorCode::kUnsupported) result.outcome = Outcome::kSkipped;
    return result;
  }
  return worstOverTime(e, group, merged, *bound,
                       compare(e, comparedStatistic(e, group, merged), *bound, group.unit));
}

CheckResult checkDrop(const Expectation& e, const Group& group, const Merged& merged) {
  if (!enoughForDrop(merged.samples.size(), group.series))
    return errorResult(fmt::format("{} samples are too few to check for a drop over time; sample longer",
                                   merged.samples.size()));
  const auto& stretch = merged.stretch;
  if (!stretch) return errorResult("cannot check for a drop over time: a sample is not above 0");
  Bound bound;
  bound.high = e.limit + stretch->noise;
  const std::string most = formatQuantity(bound.high, "ratio", 3), limit = formatQuantity(e.limit, "ratio");
  bound.text = "a drop of at most " + most + (most == limit ? "" : fmt::format(" ({} and its noise)", limit));
  CheckResult result = compare(e, roundedTo(std::max(0.0, stretch->loss), 4), bound, "ratio");
  // Noise is no part of the drop: the warning band is a share of what a drop may be beyond it.
  if (e.limit > 0 && result.margin >= 0)
    result.outcome = (bound.high - result.observed) / e.limit < e.warnBand ? Outcome::kWarn : Outcome::kPass;
  if (result.outcome == Outcome::kPass) return result;
  result.observedText +=
      fmt::format(" below its own level of {} {} ({})", formatQuantity(stretch->reference, group.unit),
                  spanText(*stretch), formatQuantity(stretch->level, group.unit));
  const bool near = result.outcome == Outcome::kWarn && result.margin >= 0;
  result.detail = fmt::format("{}, required {}{}", result.observedText, bound.text,
                              near ? "; inside the warning band" : "");
  return result;
}

CheckResult checkSpread(const Expectation& e, const Merged& merged) {
  if (merged.samples.size() < 2)
    return errorResult("stability needs at least two samples; sample longer or repeat the test");
  const Bound bound{-std::numeric_limits<double>::infinity(), e.limit,
                    "a coefficient of variation of at most " + formatQuantity(e.limit, "ratio")};
  return compare(e, merged.summary.cv, bound, "ratio");
}

/// Every sample (or text) must be one of `wanted`; the first that is not is the observed one.
CheckResult checkMembership(const Expectation& e, const Group& group, const Merged& merged) {
  std::vector<std::string> quoted;
  std::vector<double> numbers;
  for (const auto& text : e.allowed) {
    quoted.push_back("\"" + printable(text) + "\"");
    if (group.isText()) continue;
    const auto number = parseAs(text, group.unit);
    if (!number.ok()) return errorResult("the expectation cannot be compared: " + number.error().message);
    numbers.push_back(*number);
  }
  if (e.allowed.empty()) {
    if (group.isText()) return errorResult("the measurement is text, but the limit is a number");
    numbers = {e.limit};
  }
  if (!group.isText()) {
    quoted.clear();
    for (const double number : numbers) quoted.push_back(formatQuantity(number, group.unit));
  }
  CheckResult result = errorResult("");
  result.limit = numbers.size() == 1 ? numbers.front() : kNaN;
  result.limitText = (quoted.size() == 1 ? "" : "one of ") + join(quoted, ", ");
  result.outcome = Outcome::kPass;
  if (group.isText()) {
    const std::set<std::string_view> allowed(e.allowed.begin(), e.allowed.end());
    const auto odd = std::find_if(merged.texts.begin(), merged.texts.end(),
                                  [&](const std::string& text) { return allowed.count(text) == 0; });
    if (odd != merged.texts.end()) setMissed(e, result);
    result.observedText = "\"" + printable(odd == merged.texts.end() ? merged.texts.front() : *odd) + "\"";
  } else {
    std::sort(numbers.begin(), numbers.end());
    const double* last = nullptr;  // long series of one value are common
    const auto odd = std::find_if(merged.samples.begin(), merged.samples.end(), [&](const double& x) {
      const double* const before = std::exchange(last, &x);
      if (before != nullptr && *before == x) return false;
      const auto above = std::lower_bound(numbers.begin(), numbers.end(), x);
      return (above == numbers.end() || !sameFigure(x, *above)) &&
             (above == numbers.begin() || !sameFigure(x, *std::prev(above)));
    });
    if (odd != merged.samples.end()) setMissed(e, result);
    result.observed = odd == merged.samples.end() ? merged.samples.front() : *odd;
    result.observedText = formatQuantity(result.observed, group.unit, 9);
  }
  result.detail = fmt::format("{}, required {}", result.observedText, result.limitText);
  return result;
}

/// Whether `word` stands in `text` with no letter or digit before or after it: "ib" in "nvlink,ib+gdr", not
/// in "libfabric".
bool holdsWord(const std::string& text, const std::string& word) {
  const auto isPart = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
           (static_cast<unsigned char>(c) & 0x80) != 0;
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !isPart(text[at - 1]) || !isPart(word.front());
    const bool ends = end == text.size() || !isPart(text[end]) || !isPart(word.back());
    if (begins && ends) return true;
  }
  return false;
}

/// Every text must hold all of the expectation's words, or none of them.
CheckResult checkWords(const Expectation& e, const Group& group, const Merged& merged) {
  if (!group.isText() || merged.texts.empty())
    return errorResult("the measurement is no text, in which words can be");
  std::vector<std::string> quoted;
  for (const std::string& word : e.allowed) quoted.push_back("\"" + printable(word) + "\"");
  const bool wanted = e.kind == CheckKind::kContains;
  std::string odd;  // the first word that is missing, or should be
  const auto text = std::find_if(merged.texts.begin(), merged.texts.end(), [&](const std::string& one) {
    const auto word = std::find_if(e.allowed.begin(), e.allowed.end(),
                                   [&](const std::string& each) { return holdsWord(one, each) != wanted; });
    if (word != e.allowed.end()) odd = *word;
    return word != e.allowed.end();
  });
  CheckResult result = errorResult("");
  if (text == merged.texts.end())
    result.outcome = Outcome::kPass;
  else
    setMissed(e, result);
  result.observedText = "\"" + printable(text == merged.texts.end() ? merged.texts.front() : *text) + "\"";
  result.limitText = (wanted               ? "a text with "
                      : quoted.size() == 1 ? "a text without "
                                           : "a text with none of ") +
                     join(quoted, ", ");
  result.detail = fmt::format("{}, required {}", result.observedText, result.limitText);
  if (!odd.empty() && e.allowed.size() > 1)
    result.detail += fmt::format("; {} \"{}\"", wanted ? "missing:" : "found:", printable(odd));
  return result;
}

CheckResult checkPredicate(const Expectation& e, const Group& group, const Merged& merged,
                           const JudgeContext& context) {
  const auto answers = context.predicateAnswers.find(e.predicate);
  if (answers == context.predicateAnswers.end()) return errorResult("the plan's predicate was not evaluated");
  CheckResult result = errorResult("");
  result.outcome = Outcome::kPass;
  result.limitText = "a value accepted by the plan's predicate";
  if (group.isText()) {
    result.observedText = merged.texts.empty() ? "" : "\"" + printable(merged.texts.front()) + "\"";
  } else {
    result.observed = merged.summary.median;
    result.observedText = formatQuantity(result.observed, group.unit);
  }
  result.detail = fmt::format("{}, required {}", result.observedText, result.limitText);
  const auto errors = context.predicateErrors.find(e.predicate);
  for (const size_t source : merged.sources) {
    if (errors != context.predicateErrors.end() && errors->second.count(source) > 0)
      return errorResult("the plan's predicate failed: " + printable(errors->second.at(source)));
    if (source >= answers->second.size()) return errorResult("the plan's predicate gave no answer for it");
    const auto& [met, message] = answers->second[source];
    if (met) continue;
    setMissed(e, result);
    if (!message.empty()) result.detail += ": " + printable(message);
    break;
  }
  return result;
}

/// A mismatch between what was measured and what the expectation is about.
std::string unitFault(const Expectation& e, const Group& group) {
  const bool membership = e.kind == CheckKind::kEquals || e.kind == CheckKind::kOneOf ||
                          e.kind == CheckKind::kContains || e.kind == CheckKind::kExcludes;
  if (group.isText() && !membership && e.kind != CheckKind::kPredicate)
    return fmt::format("the measurement is text, which cannot be checked by \"{}\"", checkKindName(e.kind));
  const bool ownFigure =
      e.kind == CheckKind::kMin || e.kind == CheckKind::kMax || e.kind == CheckKind::kBaseline || membership;
  if (!ownFigure || e.unit == group.unit) return "";
  const bool plain =
      e.unit.empty() && (group.unit == "count" || group.unit == "ratio" || group.unit == "number" ||
                         group.unit == "bool" || group.unit == "text");
  if (plain) return "";
  return fmt::format("unit mismatch: measured in {}, the expectation is in {}", group.unit,
                     e.unit.empty() ? "no unit" : printable(e.unit, 40));
}

}  // namespace

double worstLevel(const Expectation& e, const Group& group, const Merged& merged) {
  const bool ofAll = e.statistic == "median" || e.statistic == "mean";
  if (!ofAll || group.dropLimit == nullptr) return kNaN;
  const auto& stretch = merged.stretch;
  if (!stretch) return kNaN;
  const double level = sustainedLevel(*stretch, group.direction);
  const double whole = comparedStatistic(e, group, merged);
  const bool worse = group.direction == Direction::kLower ? level > whole : level < whole;
  return worse ? level : kNaN;
}

double comparedStatistic(const Expectation& e, const Group& group, const Merged& merged) {
  const Summary& summary = merged.summary;
  const bool countable = group.unit == "count" || group.unit == "bool";
  if (countable && e.kind == CheckKind::kMin) return summary.min;
  if (countable && e.kind == CheckKind::kMax) return summary.max;
  if (e.statistic == "mean") return summary.mean;
  if (e.statistic == "min") return summary.min;
  if (e.statistic == "max") return summary.max;
  return summary.median;
}

CheckResult check(const Expectation& e, const Group& group, const Merged& merged, const JudgeContext& context,
                  const Peers& peers) {
  if (!merged.problem.empty()) return errorResult("no valid measurement: " + merged.problem);
  if (const std::string fault = unitFault(e, group); !fault.empty()) return errorResult(fault);
  switch (e.kind) {
    case CheckKind::kMin:
    case CheckKind::kMax:
    case CheckKind::kBaseline:
    case CheckKind::kWithin:
    case CheckKind::kOfPeak:
      return checkBound(e, group, merged, context, peers);
    case CheckKind::kCvMax:
      return checkSpread(e, merged);
    case CheckKind::kDropMax:
      return checkDrop(e, group, merged);
    case CheckKind::kEquals:
    case CheckKind::kOneOf:
      return checkMembership(e, group, merged);
    case CheckKind::kContains:
    case CheckKind::kExcludes:
      return checkWords(e, group, merged);
    case CheckKind::kPredicate:
      return checkPredicate(e, group, merged, context);
  }
  return errorResult("an expectation of unknown kind");
}

}  // namespace muster
