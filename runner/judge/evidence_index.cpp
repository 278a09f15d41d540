// SPDX-License-Identifier: Apache-2.0
// Indexes the evidence of a stage and merges the samples of repeats.
#include "runner/judge/evidence_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

/// Units in which a negative figure can only be a fault: durations, sizes, rates, power.
bool neverNegative(const std::string& unit) {
  return unit == "s" || unit == "B" || unit == "Hz" || unit == "W" || unit.ends_with("/s");
}

std::string problemOfSamples(const std::vector<double>& samples, const std::string& unit) {
  if (samples.empty()) return "it has no sample";
  const auto count = [&](auto test) { return std::count_if(samples.begin(), samples.end(), test); };
  if (const auto bad = count([](double x) { return !std::isfinite(x); }); bad > 0)
    return fmt::format("{} of {} samples are NaN or infinite", bad, samples.size());
  const auto negative = std::find_if(samples.begin(), samples.end(), [](double x) { return x < 0; });
  if (negative != samples.end() && neverNegative(unit))
    return fmt::format("a sample is negative ({}), which cannot be", formatQuantity(*negative, unit));
  if (unit == "bool" && count([](double x) { return x != 0 && x != 1; }) > 0)
    return "a sample is neither true nor false";
  return "";
}

std::string problemOf(const Measurement& m, const Group& group) {
  if (m.unit != group.unit)
    return fmt::format("its unit changed from {} to {}", group.unit, printable(m.unit, 40));
  if (!isBaseUnit(m.unit)) return fmt::format("its unit \"{}\" is not a base unit", printable(m.unit, 40));
  if (m.isText()) return m.samples.empty() ? "" : "it has both a text and samples";
  return problemOfSamples(m.samples, m.unit);
}

/// The parts of a measurement's identity, each with its length before it, so no two different keys read
/// alike.
std::string keyOf(const Measurement& m) {
  std::string key;
  const auto add = [&](const std::string& part) { key += std::to_string(part.size()) + ":" + part; };
  add(m.metric);
  add(m.caseId);
  add(std::to_string(m.rank));
  add(m.device);
  for (const auto& [label, value] : m.labels) {
    add(label);
    add(value);
  }
  return key;
}

int severity(CaseEnd::State state) {
  return state == CaseEnd::State::kError ? 2 : state == CaseEnd::State::kUnsupported ? 1 : 0;
}

}  // namespace

EvidenceIndex::EvidenceIndex(const StageEvidence& evidence) : evidence_(evidence) {
  for (const auto& end : evidence.ends) addEnd(end);
  for (size_t i = 0; i < evidence.measurements.size(); ++i) addMeasurement(i);
  for (const auto& group : groups_) {
    const auto at = caseRankByKey_.find({group->caseId, group->rank});
    if (at == caseRankByKey_.end())
      strays_.push_back(group.get());
    else
      at->second->groups.push_back(group.get());
  }
  addMissingEnds();
  addDropLimits();
  summarizeAll();
}

const CaseRank* EvidenceIndex::caseRank(const std::string& caseId, int rank) const {
  const auto at = caseRankByKey_.find({caseId, rank});
  return at == caseRankByKey_.end() ? nullptr : at->second;
}

void EvidenceIndex::addEnd(const CaseEnd& end) {
  auto& at = caseRankByKey_[{end.caseId, end.rank}];
  if (at == nullptr) {
    caseRanks_.push_back(std::make_unique<CaseRank>(CaseRank{end.caseId, end.rank, end.device, {}, {}}));
    at = caseRanks_.back().get();
  }
  const auto [known, fresh] = at->ends.emplace(end.attempt, end);
  if (!fresh && severity(end.state) > severity(known->second.state)) known->second = end;
  if (!end.device.empty()) devices_.insert(end.device);
}

void EvidenceIndex::addMeasurement(size_t index) {
  const Measurement& m = evidence_.measurements[index];
  Group*& group = groupByKey_[keyOf(m)];
  if (group == nullptr) {
    groups_.push_back(std::make_unique<Group>());
    group = groups_.back().get();
    *group = {m.metric, m.caseId, m.rank,   m.device, m.labels, m.unit, m.direction,
              m.peak,   true,     m.series, m.window, {},       {}};
  }
  group->informational = group->informational && m.informational;
  Merged& merged = group->attempts[m.attempt];
  if (merged.problem.empty()) merged.problem = problemOf(m, *group);
  merged.sources.push_back(index);
  merged.samples.insert(merged.samples.end(), m.samples.begin(), m.samples.end());
  if (m.isText() && texts_.emplace(&merged, m.text).second) merged.texts.push_back(m.text);
}

namespace {

/// Whose word counts: the plan's over the profile's over what is built in.
int precedence(const Expectation& e) {
  return e.origin == "standing" ? 0 : e.origin.starts_with("profile") ? 1 : 2;
}

}  // namespace

void EvidenceIndex::addDropLimits() {
  std::vector<const Expectation*> limits;
  for (const auto& e : evidence_.expectations)
    if (e.kind == CheckKind::kDropMax) limits.push_back(&e);
  for (const auto& group : groups_) {
    if (group->series == Series::kNone) continue;
    const auto weight = [](const Expectation& e) { return std::pair(precedence(e), e.where.size()); };
    for (const auto* e : limits) {
      if (e->metric != group->metric || !labelsMatch(group->labels, e->where)) continue;
      if (group->dropLimit == nullptr || weight(*e) > weight(*group->dropLimit)) group->dropLimit = e;
    }
  }
}

bool Group::dropsLimitedBy(const Expectation& e) const {
  return dropLimit != nullptr && precedence(e) == precedence(*dropLimit) && labelsMatch(labels, e.where);
}

void EvidenceIndex::summarizeAll() {
  for (const auto& group : groups_)
    for (auto& [attempt, merged] : group->attempts) {
      merged.summary = summarize(merged.samples);
      if (group->dropLimit != nullptr && merged.problem.empty())
        merged.stretch = worstStretch(merged.samples, group->series, group->direction, group->window);
    }
}

/// An attempt that measured something and never said how it ended did not end well.
void EvidenceIndex::addMissingEnds() {
  for (const auto& caseRank : caseRanks_)
    for (const Group* group : caseRank->groups) {
      const int attempt = group->attempts.rbegin()->first;
      if (attempt <= caseRank->lastAttempt()) continue;
      caseRank->ends[attempt] = {caseRank->caseId,
                                 caseRank->rank,
                                 caseRank->device,
                                 attempt,
                                 CaseEnd::State::kError,
                                 "the case has measurements but did not end",
                                 ""};
    }
}

}  // namespace muster
