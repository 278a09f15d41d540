// SPDX-License-Identifier: Apache-2.0
// The clauses of a contract beside what the run shows of them.
#include <fmt/format.h>

#include <algorithm>

#include "reports/acceptance/clause_matrix.h"
#include "reports/html/page/symbols.h"
#include "reports/html/sections.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"

namespace muster {
namespace {

constexpr const char* kNoEvidence = "no evidence";

size_t numberOf(const Record& record, const std::string& stage) {
  const auto at = std::find_if(record.stages.begin(), record.stages.end(),
                               [&](const StageRecord& s) { return s.name == stage; });
  return static_cast<size_t>(at - record.stages.begin()) + 1;
}

View stageLink(const Record& record, const std::string& stage) {
  View view;
  view.text("name", stage).text("number", std::to_string(numberOf(record, stage)));
  return view;
}

View clauseView(const Record& record, const ClauseResult& result) {
  const Clause& clause = *result.clause;
  const bool gap = !result.missing.empty();
  const bool shown = result.worst != nullptr;
  const std::string outcome = gap ? outcomeName(Outcome::kError) : outcomeName(result.worst->outcome);
  View view;
  view.text("id", clause.id).text("requirement", clause.requirement).text("source", clause.source);
  view.text("outcome", outcome).text("symbol", outcomeSymbol(gap ? Outcome::kError : result.worst->outcome));
  view.text("result", gap ? kNoEvidence : outcome);
  view.text("missing", join(result.missing, ", "));
  view.text("limit", shown ? wantedText(*result.worst) : "")
      .text("margin", shown ? marginText(*result.worst) : "");
  view.text("device", shown ? result.worst->device : "")
      .text("measured", shown ? result.worst->observedText : "");
  view.text("count", result.results == 0 ? "" : fmt::format("{} of {} met", result.met, result.results));
  view.list("evidence",
            viewsOf(result.stages, [&](const std::string& stage) { return stageLink(record, stage); }));
  return view;
}

}  // namespace

void addClauses(View& page, const Record& record, const AcceptanceDocument& document) {
  const Requirements none;
  const Requirements& requirements = document.requirements ? *document.requirements : none;
  const ClauseMatrix matrix = clauseMatrix(requirements, record);
  page.text("requirements_name", requirements.name).text("requirements_sha256", requirements.sha256);
  page.text("clause_stages_without", document.requirements ? join(matrix.stagesWithout, ", ") : "");
  page.list("clauses",
            viewsOf(matrix.clauses, [&](const ClauseResult& result) { return clauseView(record, result); }));
}

}  // namespace muster
