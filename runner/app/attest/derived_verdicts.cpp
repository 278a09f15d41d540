// SPDX-License-Identifier: Apache-2.0
// Compares verdicts one by one.
#include "runner/app/attest/derived_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runner/core/text.h"

namespace muster {
namespace {

/// What a verdict is about.
std::string keyOf(const Verdict& verdict) {
  return verdict.caseId + '\x1d' + verdict.metric + '\x1d' + verdict.device + '\x1d' +
         std::to_string(verdict.rank) + '\x1d' + dumpJson(Json(verdict.labels)) + '\x1d' +
         (verdict.expectation ? dumpJson(toJson(*verdict.expectation)) : "");
}

std::string subjectOf(const std::string& stage, const Verdict& verdict) {
  std::string text = "stage " + stage;
  if (!verdict.metric.empty()) text += ", " + verdict.metric;
  if (!verdict.device.empty()) text += " " + verdict.device;
  Labels labels = verdict.labels;
  if (const auto device = labels.find("device"); device != labels.end() && device->second == verdict.device)
    labels.erase(device);
  if (!labels.empty()) text += " (" + labelsText(labels) + ")";
  return text;
}

bool sameNumber(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool sameFigures(const Verdict& a, const Verdict& b) {
  return sameNumber(a.observed, b.observed) && sameNumber(a.limit, b.limit) &&
         sameNumber(a.margin, b.margin) && a.required == b.required;
}

bool isMet(Outcome outcome) {
  return outcome == Outcome::kPass || outcome == Outcome::kWarn;
}

/// Whether only a warning makes the difference.
bool sameButWarnings(const Verdict& a, const Verdict& b) {
  return isMet(a.outcome) && isMet(b.outcome) && sameNumber(a.observed, b.observed) &&
         sameNumber(a.limit, b.limit) && a.required == b.required;
}

/// How a stored verdict differs from the derived one; empty: it does not. What a run adds as advice to a
/// verdict without any does not follow from samples.
std::string differenceOf(const Verdict& stored, Verdict derived, bool texts) {
  if (derived.remedy.empty()) derived.remedy = stored.remedy;
  if (stored.outcome != derived.outcome)
    return fmt::format("stored {}, derived {}: {}", outcomeName(stored.outcome), outcomeName(derived.outcome),
                       derived.detail);
  if (!sameFigures(stored, derived))
    return fmt::format("stored {} with {} against {} (margin {}), derived {} with {} against {} (margin {})",
                       outcomeName(stored.outcome), stored.observed, stored.limit, stored.margin,
                       outcomeName(derived.outcome), derived.observed, derived.limit, derived.margin);
  if (texts && dumpJson(toJson(stored)) != dumpJson(toJson(derived)))
    return fmt::format("stored \"{}\", derived \"{}\"", stored.detail, derived.detail);
  return "";
}

using Verdicts = std::map<std::string, std::vector<const Verdict*>>;

Verdicts byKey(const StageRecord& stage) {
  Verdicts verdicts;
  for (const Verdict& verdict : stage.verdicts) verdicts[keyOf(verdict)].push_back(&verdict);
  return verdicts;
}

void compareStage(const StageRecord& stored, const StageRecord& derived, bool texts,
                  std::vector<VerdictDifference>& out) {
  Verdicts left = byKey(derived);
  for (const Verdict& verdict : stored.verdicts) {
    auto& same = left[keyOf(verdict)];
    if (same.empty()) {
      out.push_back({fmt::format("{}: stored {}, and no sample gives it", subjectOf(stored.name, verdict),
                                 outcomeName(verdict.outcome))});
      continue;
    }
    const std::string what = differenceOf(verdict, *same.front(), texts);
    if (!what.empty())
      out.push_back({subjectOf(stored.name, verdict) + ": " + what, sameButWarnings(verdict, *same.front())});
    same.erase(same.begin());
  }
  for (const auto& [key, verdicts] : left)
    for (const Verdict* verdict : verdicts)
      out.push_back({fmt::format("{}: nothing is stored, derived {}: {}", subjectOf(stored.name, *verdict),
                                 outcomeName(verdict->outcome), verdict->detail)});
  if (stored.outcome != derived.outcome)
    out.push_back({fmt::format("stage {}: stored {}, derived {}", stored.name, outcomeName(stored.outcome),
                               outcomeName(derived.outcome)),
                   isMet(stored.outcome) && isMet(derived.outcome)});
}

}  // namespace

std::vector<VerdictDifference> verdictDifferences(const Record& record, const Record& again, bool texts) {
  std::vector<VerdictDifference> out;
  for (const StageRecord& stage : record.stages) {
    const auto derived = std::find_if(again.stages.begin(), again.stages.end(),
                                      [&](const StageRecord& s) { return s.name == stage.name; });
    if (derived == again.stages.end())
      out.push_back({fmt::format("stage {}: it is stored, and does not follow from the record", stage.name)});
    else
      compareStage(stage, *derived, texts, out);
  }
  for (const StageRecord& stage : again.stages)
    if (std::none_of(record.stages.begin(), record.stages.end(),
                     [&](const StageRecord& s) { return s.name == stage.name; }))
      out.push_back({fmt::format("stage {}: it follows from the record, and is not stored", stage.name)});
  if (record.acceptance != again.acceptance || record.exitCode != again.exitCode)
    out.push_back(
        {fmt::format("the result is stored as {} (exit code {}), derived {} (exit code {})",
                     nameOf(record.acceptance), record.exitCode, nameOf(again.acceptance), again.exitCode)});
  return out;
}

}  // namespace muster
