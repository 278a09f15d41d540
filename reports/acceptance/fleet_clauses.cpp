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

/// The metrics and stages of the clause that none of the node's records shows.
std::set<std::string> missingIn(const std::vector<ClauseMatrix>& matrices, const Clause& clause,
                                size_t index) {
  std::set<std::string> names(clause.metrics.begin(), clause.metrics.end());
  names.insert(clause.stages.begin(), clause.stages.end());
  for (const ClauseMatrix& matrix : matrices)
    std::erase_if(names,
                  [&](const std::string& name) { return !contains(matrix.clauses[index].missing, name); });
  return names;
}

/// The stage with only those results that one rank reports for its whole group.
StageRecord sharedPart(const StageRecord& stage) {
  StageRecord shared;
  shared.name = stage.name;
  shared.plugin = stage.plugin;
  const auto metrics =
      stage.evidence.is_object() ? stage.evidence.find("leader_metrics") : stage.evidence.end();
  if (metrics == stage.evidence.end() || !metrics->is_array()) return shared;
  for (const Verdict& verdict : stage.verdicts)
    if (std::find(metrics->begin(), metrics->end(), verdict.metric) != metrics->end())
      shared.verdicts.push_back(verdict);
  return shared;
}

/// The stages in which the node had no part: it was beside the group of a sweep.
std::set<std::string> idleStages(const std::vector<Record>& records) {
  std::set<std::string> idle;
  for (const Record& record : records)
    for (const StageRecord& stage : record.stages)
      if (stage.state == StageState::kIdle) idle.insert(stage.name);
  for (const Record& record : records)
    for (const StageRecord& stage : record.stages)
      if (stage.state == StageState::kRan) idle.erase(stage.name);
  return idle;
}

/// The part of a clause that is about one of its metrics or stages.
Clause partOf(const Clause& clause, const std::string& name) {
  Clause part = clause;
  (contains(clause.metrics, name) ? part.metrics : part.stages) = {name};
  return part;
}

}  // namespace

FleetClauses::FleetClauses(const Requirements& requirements) : requirements_(requirements) {
  for (const Clause& clause : requirements_.clauses)
    clauses_.push_back({clause, 0, {}, {}, 0, 0, std::nullopt, ""});
}

void FleetClauses::add(const std::string& node, const std::vector<Record>& records,
                       const std::vector<Record>& repeated) {
  std::vector<ClauseMatrix> matrices, before;
  for (const Record& record : repeated) before.push_back(clauseMatrix(requirements_, record));
  std::vector<Member> groups;
  for (const Record& record : records) {
    matrices.push_back(clauseMatrix(requirements_, record));
    for (const Member& member : addGroups(record)) groups.push_back(member);
    for (const StageRecord& stage : record.stages)
      if (!isOwnStage(stage.name))
        (contains(matrices.back().stagesWithout, stage.name) ? stages_ : used_).insert(stage.name);
  }
  const std::set<std::string> idle = idleStages(records);
  for (size_t i = 0; i < clauses_.size(); ++i)
    addClause(clauses_[i], {i, node, {}, false, groups, false}, idle, matrices, before);
}

void FleetClauses::addUnreadable(const std::string& node, const std::string& why) {
  unreadable_[node] = "its record cannot be read for the clauses: " + printable(why, 300);
}

std::vector<FleetClauses::Member> FleetClauses::addGroups(const Record& record) {
  const auto id = record.launcher.is_object() ? record.launcher.find("fleet_id") : record.launcher.end();
  const std::string run = id != record.launcher.end() && id->is_string() ? id->get<std::string>() : "";
  std::vector<Member> groups;
  for (const StageRecord& stage : record.stages) {
    if (stage.scope != Scope::kCluster || stage.state != StageState::kRan || !stage.group.is_object())
      continue;
    const auto text = [&](const char* key) { return stage.group.value(key, Json()).dump(); };
    const GroupKey key = {run, stage.name,
                          text("id") + " " + text("nodes") + " nodes, ranks: " + text("world_size")};
    Group& group = groups_.try_emplace(key).first->second;
    group.missed.resize(clauses_.size());
    const Json nodes = stage.group.value("nodes", Json());  // the run's first ones
    if (!nodes.is_number_integer() || record.nodeRank >= nodes.get<int64_t>()) continue;
    ++group.members[record.nodeRank];
    if (record.nodeRank == 0) addTogether(sharedPart(stage), group);
    groups.push_back({&group, record.nodeRank});
  }
  return groups;
}

void FleetClauses::addTogether(const StageRecord& stage, Group& group) const {
  for (size_t i = 0; i < clauses_.size(); ++i) {
    const Clause& clause = clauses_[i].clause;
    for (const auto* names : {&clause.metrics, &clause.stages})
      for (const std::string& name : *names) {
        const Clause part = partOf(clause, name);
        const ClauseResult result = clauseResult(part, stage);
        if (result.results > 0) group.missed[i][name] |= result.isMissed();
      }
  }
}

void FleetClauses::addClause(FleetClause& clause, OwnEvidence own, const std::set<std::string>& idle,
                             const std::vector<ClauseMatrix>& matrices,
                             const std::vector<ClauseMatrix>& before) {
  const auto missed = [&own](const ClauseMatrix& matrix) { return matrix.clauses[own.clause].isMissed(); };
  const auto isIdle = [&idle](const std::string& name) { return idle.contains(name); };
  const std::vector<std::string>& stages = clause.clause.stages;
  own.missing = missingIn(matrices, clause.clause, own.clause);
  std::erase_if(own.missing, isIdle);
  own.missed = std::any_of(matrices.begin(), matrices.end(), missed) ||
               std::any_of(before.begin(), before.end(), missed);
  own.idle = !stages.empty() && std::all_of(stages.begin(), stages.end(), isIdle);
  for (const ClauseMatrix& matrix : matrices) {
    const ClauseResult& result = matrix.clauses[own.clause];
    clause.results += result.results;
    clause.met += result.met;
    if (result.worst == nullptr || !isWorseEvidence(*result.worst, clause.worst ? &*clause.worst : nullptr))
      continue;
    clause.worst = *result.worst;
    clause.worstNode = own.node;
  }
  own_.push_back(std::move(own));
}

void FleetClauses::finish() {
  std::stable_partition(own_.begin(), own_.end(), [](const OwnEvidence& own) { return !own.idle; });
  for (OwnEvidence& own : own_) settle(own);
  own_.clear();
}

void FleetClauses::settle(OwnEvidence& own) {
  for (const auto& [group, rank] : own.groups) {
    const auto isOne = [&members = group->members](int node) {
      const auto at = members.find(node);
      return at != members.end() && at->second == 1;
    };
    if (!isOne(0) || !isOne(rank)) continue;
    const auto& shown = group->missed[own.clause];
    std::erase_if(own.missing, [&](const std::string& name) {
      const auto at = shown.find(name);
      own.missed = own.missed || (at != shown.end() && at->second);
      return at != shown.end();
    });
  }
  FleetClause& clause = clauses_[own.clause];
  const bool shownByOthers = own.idle && clause.nodes > 0;
  if (shownByOthers && !own.missed) return;
  if ((own.idle && !shownByOthers) || !own.missing.empty()) {
    clause.without.push_back(std::move(own.node));
    return;
  }
  ++clause.nodes;
  if (own.missed) clause.missed.push_back(std::move(own.node));
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
  std::vector<std::string> unreadable;
  for (const auto& [node, why] : unreadable_) unreadable.push_back(node);
  if (!unreadable.empty())
    lines.push_back("records that cannot be read for the clauses: " + printable(namesText(unreadable), 300));
  return lines;
}

std::map<std::string, std::string> FleetClauses::openNodes() const {
  std::map<std::string, std::vector<std::string>> open;
  for (const FleetClause& clause : clauses_) {
    for (const std::string& node : clause.without)
      open[node].push_back(clause.clause.id + " has no evidence");
    for (const std::string& node : clause.missed) open[node].push_back(clause.clause.id + " is not met");
  }
  std::map<std::string, std::string> lines = unreadable_;
  for (const auto& [node, clauses] : open) lines[node] = "clause " + printable(namesText(clauses), 300);
  return lines;
}

}  // namespace muster
