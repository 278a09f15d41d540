// SPDX-License-Identifier: Apache-2.0
// Adds up clauses over nodes.
#include "reports/acceptance/fleet_clauses.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/record/record_check.h"

namespace muster {
namespace {

constexpr size_t kMostNamed = 8;

std::string namesText(const std::vector<std::string>& names) {
  std::string text = join(
      {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostNamed))}, ", ");
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

/// "clause 4.2 has no evidence on 2 of 4 nodes: n1, n2"; nothing without nodes.
void tell(std::vector<std::string>& lines, const FleetClause& clause, const char* what,
          const std::vector<std::string>& nodes) {
  if (!nodes.empty())
    lines.push_back(fmt::format("clause {} {} on {} of {} nodes: {}", printable(clause.clause.id, 80), what,
                                nodes.size(), clause.without.size() + clause.nodes,
                                printable(namesText(nodes), 300)));
}

/// Whether something that the clause needs is shown by none of the node's records.
bool lacksEvidence(const std::vector<ClauseMatrix>& matrices, size_t index) {
  if (matrices.empty()) return true;
  const auto& first = matrices.front().clauses[index].missing;
  return std::any_of(first.begin(), first.end(), [&](const std::string& name) {
    return std::all_of(matrices.begin(), matrices.end(), [&](const ClauseMatrix& matrix) {
      return contains(matrix.clauses[index].missing, name);
    });
  });
}

}  // namespace

FleetClauses::FleetClauses(const Requirements& requirements) : requirements_(requirements) {
  for (const Clause& clause : requirements_.clauses)
    clauses_.push_back({clause, 0, {}, {}, 0, 0, std::nullopt, ""});
}

void FleetClauses::add(const std::string& node, const std::vector<Record>& records) {
  std::vector<ClauseMatrix> matrices;
  for (const Record& record : records) {
    matrices.push_back(clauseMatrix(requirements_, record));
    for (const StageRecord& stage : record.stages)
      if (!isOwnStage(stage.name))
        (contains(matrices.back().stagesWithout, stage.name) ? stages_ : used_).insert(stage.name);
  }
  for (size_t i = 0; i < clauses_.size(); ++i) addClause(clauses_[i], node, matrices, i);
}

void FleetClauses::addClause(FleetClause& clause, const std::string& node,
                             const std::vector<ClauseMatrix>& matrices, size_t index) {
  const auto missed = [index](const ClauseMatrix& matrix) { return matrix.clauses[index].isMissed(); };
  const bool lacks = lacksEvidence(matrices, index);
  if (lacks)
    clause.without.push_back(node);
  else
    ++clause.nodes;
  if (!lacks && std::any_of(matrices.begin(), matrices.end(), missed)) clause.missed.push_back(node);
  for (const ClauseMatrix& matrix : matrices) {
    const ClauseResult& result = matrix.clauses[index];
    clause.results += result.results;
    clause.met += result.met;
    if (result.worst == nullptr || !isWorseEvidence(*result.worst, clause.worst ? &*clause.worst : nullptr))
      continue;
    clause.worst = *result.worst;
    clause.worstNode = node;
  }
}

std::vector<std::string> FleetClauses::stagesWithout() const {
  std::vector<std::string> names;
  std::set_difference(stages_.begin(), stages_.end(), used_.begin(), used_.end(), std::back_inserter(names));
  return names;
}

std::vector<std::string> FleetClauses::gaps() const {
  std::vector<std::string> lines;
  for (const FleetClause& clause : clauses_) {
    tell(lines, clause, "has no evidence", clause.without);
    tell(lines, clause, "is not met", clause.missed);
  }
  return lines;
}

std::map<std::string, std::string> FleetClauses::openNodes() const {
  std::map<std::string, std::vector<std::string>> open;
  for (const FleetClause& clause : clauses_) {
    for (const std::string& node : clause.without)
      open[node].push_back(clause.clause.id + " has no evidence");
    for (const std::string& node : clause.missed) open[node].push_back(clause.clause.id + " is not met");
  }
  std::map<std::string, std::string> lines;
  for (const auto& [node, clauses] : open) lines[node] = "clause " + printable(namesText(clauses), 300);
  return lines;
}

}  // namespace muster
