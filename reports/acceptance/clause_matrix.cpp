// SPDX-License-Identifier: Apache-2.0
// Finds the evidence of each clause.
#include "reports/acceptance/clause_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "runner/core/text.h"
#include "runner/record/record_check.h"

namespace muster {
namespace {

constexpr int kIncomplete = 3;

/// A result about a limit, of something that was measured. Skipped, deferred and unjudged ones show nothing.
bool showsSomething(const Verdict& verdict) {
  constexpr std::array kShown = {Outcome::kPass, Outcome::kWarn, Outcome::kFail, Outcome::kFlaky,
                                 Outcome::kWaived};
  return verdict.expectation && std::find(kShown.begin(), kShown.end(), verdict.outcome) != kShown.end();
}

/// A warning is about a limit that was missed, or about one that was met within its warning band.
bool isMet(const Verdict& verdict) {
  return verdict.outcome == Outcome::kPass || (verdict.outcome == Outcome::kWarn && verdict.margin >= 0);
}

bool covers(const Clause& clause, const StageRecord& stage, const Verdict& verdict) {
  const auto carries = [&](const auto& label) {
    const auto at = verdict.labels.find(label.first);
    return at != verdict.labels.end() && at->second == label.second;
  };
  return (clause.stages.empty() || contains(clause.stages, stage.name)) &&
         (clause.metrics.empty() || contains(clause.metrics, verdict.metric)) &&
         std::all_of(clause.where.begin(), clause.where.end(), carries);
}

/// Whether what the stage itself measures is evidence for any clause. What is sampled beside every stage says
/// nothing of it.
bool isEvidence(const Requirements& requirements, const StageRecord& stage) {
  return std::any_of(stage.verdicts.begin(), stage.verdicts.end(), [&](const Verdict& verdict) {
    return verdict.metric.starts_with(stage.plugin + ".") &&
           std::any_of(requirements.clauses.begin(), requirements.clauses.end(),
                       [&](const Clause& clause) { return covers(clause, stage, verdict); });
  });
}

class ClauseReader {
 public:
  explicit ClauseReader(const Clause& clause) : clause_(clause) { result_.clause = &clause; }

  void read(const StageRecord& stage) {
    for (const Verdict& verdict : stage.verdicts)
      if (showsSomething(verdict) && covers(clause_, stage, verdict)) take(stage, verdict);
  }

  ClauseResult result() {
    // Each metric in some stage, and each stage with some metric: a stage that never ran is no evidence.
    for (const std::string& name : clause_.metrics)
      if (!metrics_.contains(name)) result_.missing.push_back(name);
    for (const std::string& name : clause_.stages)
      if (!stages_.contains(name)) result_.missing.push_back(name);
    return std::move(result_);
  }

 private:
  void take(const StageRecord& stage, const Verdict& verdict) {
    ++result_.results;
    result_.met += isMet(verdict) ? 1 : 0;
    result_.waived += verdict.outcome == Outcome::kWaived ? 1 : 0;
    if (isWorseEvidence(verdict, result_.worst)) result_.worst = &verdict;
    if (result_.stages.empty() || result_.stages.back() != stage.name) result_.stages.push_back(stage.name);
    metrics_.insert(verdict.metric);
    stages_.insert(stage.name);
  }

  const Clause& clause_;
  ClauseResult result_;
  std::set<std::string> metrics_, stages_;  ///< with evidence
};

/// The distance to the limit; NaN where there is none between met and missed.
double distanceOf(const Verdict& verdict) {
  const bool graded =
      verdict.expectation && verdict.expectation->unit != "bool" && verdict.expectation->unit != "text";
  return graded ? verdict.margin : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

/// Outcomes are declared the worst first.
bool isWorseEvidence(const Verdict& a, const Verdict* b) {
  if (b == nullptr || a.outcome != b->outcome) return b == nullptr || a.outcome < b->outcome;
  const double mine = distanceOf(a), other = distanceOf(*b);
  return !std::isnan(mine) && (std::isnan(other) || mine < other);
}

std::vector<std::string> ClauseMatrix::gaps() const {
  std::vector<std::string> lines;
  for (const ClauseResult& result : clauses) {
    const std::string id = printable(result.clause->id, 80);
    if (!result.missing.empty())
      lines.push_back(
          fmt::format("clause {} has no evidence: {}", id, printable(join(result.missing, ", "), 300)));
    else if (result.isMissed())
      lines.push_back(fmt::format("clause {} is not met: {}", id, printable(result.text(), 300)));
  }
  return lines;
}

ClauseMatrix clauseMatrix(const Requirements& requirements, const Record& record) {
  ClauseMatrix matrix;
  for (const Clause& clause : requirements.clauses) {
    ClauseReader reader(clause);
    for (const StageRecord& stage : record.stages) reader.read(stage);
    matrix.clauses.push_back(reader.result());
  }
  for (const StageRecord& stage : record.stages)
    if (!isOwnStage(stage.name) && !isEvidence(requirements, stage))
      matrix.stagesWithout.push_back(stage.name);
  return matrix;
}

ClauseResult clauseResult(const Clause& clause, const StageRecord& stage) {
  ClauseReader reader(clause);
  reader.read(stage);
  return reader.result();
}

std::string ClauseResult::text() const {
  if (!missing.empty()) return "no evidence: " + join(missing, ", ");
  return fmt::format("{}: {} of {} check results met ({})", outcomeName(worst->outcome), met, results,
                     join(stages, ", "));
}

Record underRequirements(Record record, const std::optional<Requirements>& requirements) {
  if (!requirements) return record;
  const std::vector<std::string> gaps = clauseMatrix(*requirements, record).gaps();
  if (record.acceptance == Acceptance::kAccepted && !gaps.empty()) {
    record.acceptance = Acceptance::kIncomplete;
    record.exitCode = kIncomplete;
  }
  record.reasons.insert(record.reasons.end(), gaps.begin(), gaps.end());
  return record;
}

}  // namespace muster
