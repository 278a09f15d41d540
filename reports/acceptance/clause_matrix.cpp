// SPDX-License-Identifier: Apache-2.0
// Finds the evidence of each clause.
#include "reports/acceptance/clause_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
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

bool isAbout(const Clause& clause, const StageRecord& stage) {
  return clause.stages.empty() || contains(clause.stages, stage.name);
}

/// Whether the stage itself measures this. What is sampled beside every stage says nothing of it.
bool isOwn(const StageRecord& stage, const std::string& metric) {
  return stage.plugin == kImportedPlugin || metric.starts_with(stage.plugin + ".");
}

bool covers(const Clause& clause, const StageRecord& stage, const Verdict& verdict) {
  const auto carries = [&](const auto& label) {
    const auto at = verdict.labels.find(label.first);
    return at != verdict.labels.end() && at->second == label.second;
  };
  const bool named =
      clause.metrics.empty() ? isOwn(stage, verdict.metric) : contains(clause.metrics, verdict.metric);
  return isAbout(clause, stage) && named && std::all_of(clause.where.begin(), clause.where.end(), carries);
}

/// What a case would have measured where the device had supported it.
std::set<std::string> metricsOf(const StageRecord& stage, const std::string& caseId) {
  std::set<std::string> names;
  const Json none = Json::object();
  const Json& all = stage.evidence.is_object() ? stage.evidence.value("case_metrics", none) : none;
  const Json& own = all.is_object() ? all.value(caseId, none) : none;
  for (const Json& name : own)
    if (name.is_string()) names.insert(name.get<std::string>());
  return names;
}

/// Whether a case may carry the clause's labels: those that are no parameters of it only a measurement shows.
bool mayCarry(const Clause& clause, const StageRecord& stage, const std::string& caseId) {
  const auto at = std::find_if(stage.cases.begin(), stage.cases.end(),
                               [&](const CaseRecord& one) { return one.id == caseId; });
  if (at == stage.cases.end() || !at->params.is_object()) return true;
  return std::all_of(clause.where.begin(), clause.where.end(), [&](const auto& label) {
    const auto param = at->params.find(label.first);
    return param == at->params.end() || !param->is_string() || *param == label.second;
  });
}

/// Whether what the stage itself measures is evidence for any clause.
bool isEvidence(const Requirements& requirements, const StageRecord& stage) {
  return std::any_of(stage.verdicts.begin(), stage.verdicts.end(), [&](const Verdict& verdict) {
    return isOwn(stage, verdict.metric) &&
           std::any_of(requirements.clauses.begin(), requirements.clauses.end(),
                       [&](const Clause& clause) { return covers(clause, stage, verdict); });
  });
}

class ClauseReader {
 public:
  explicit ClauseReader(const Clause& clause) : clause_(clause) { result_.clause = &clause; }

  void read(const StageRecord& stage) {
    for (const Verdict& verdict : stage.verdicts) {
      if (showsSomething(verdict) && covers(clause_, stage, verdict)) take(stage, verdict);
      if (verdict.outcome == Outcome::kSkipped) leaveOut(stage, verdict);
    }
  }

  ClauseResult result() {
    // Each metric in some stage, and each stage with some metric: a stage that never ran is no evidence.
    for (const std::string& name : clause_.metrics)
      if (!metrics_.isShown(name)) result_.missing.push_back(name);
    for (const std::string& name : clause_.stages)
      if (!stages_.isShown(name)) result_.missing.push_back(name);
    return std::move(result_);
  }

 private:
  void take(const StageRecord& stage, const Verdict& verdict) {
    ++result_.results;
    result_.met += isMet(verdict) ? 1 : 0;
    result_.waived += verdict.outcome == Outcome::kWaived ? 1 : 0;
    if (isWorseEvidence(verdict, result_.worst)) result_.worst = &verdict;
    if (result_.stages.empty() || result_.stages.back() != stage.name) result_.stages.push_back(stage.name);
    metrics_.shown[verdict.metric].insert(partOf(verdict));
    stages_.shown[stage.name].insert(partOf(verdict));
  }

  /// A device that did not support a case shows nothing of it. Another case may show it, on that device.
  void leaveOut(const StageRecord& stage, const Verdict& verdict) {
    const bool ofCase = verdict.metric.empty() && !verdict.caseId.empty();
    if (!ofCase || !isAbout(clause_, stage) || !mayCarry(clause_, stage, verdict.caseId)) return;
    for (const std::string& metric : metricsOf(stage, verdict.caseId)) {
      if (clause_.metrics.empty() ? !isOwn(stage, metric) : !contains(clause_.metrics, metric)) continue;
      metrics_.unsupported[metric].insert(partOf(verdict));
      stages_.unsupported[stage.name].insert(partOf(verdict));
      result_.unsupported = fmt::format("{}: {}", stage.name, verdict.detail);
    }
  }

  using Part = std::pair<std::string, int>;  ///< device and rank; of a whole group: no device
  static Part partOf(const Verdict& verdict) { return {verdict.device, verdict.rank}; }

  /// By metric or stage: who has shown something of it, and who says that it cannot.
  struct Evidence {
    std::map<std::string, std::set<Part>> shown, unsupported;

    [[nodiscard]] bool isShown(const std::string& name) const {
      const auto by = shown.find(name);
      if (by == shown.end()) return false;
      const auto lacking = unsupported.find(name);
      const bool ofGroup = by->second.begin()->first.empty();
      return ofGroup || lacking == unsupported.end() ||
             std::includes(by->second.begin(), by->second.end(), lacking->second.begin(),
                           lacking->second.end());
    }
  };

  const Clause& clause_;
  ClauseResult result_;
  Evidence metrics_, stages_;
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
      lines.push_back(fmt::format("clause {} has {}", id, printable(result.text(), 300)));
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
  if (!missing.empty())
    return "no evidence: " + join(missing, ", ") + (unsupported.empty() ? "" : " (" + unsupported + ")");
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
