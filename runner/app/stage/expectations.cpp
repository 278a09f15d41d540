// SPDX-License-Identifier: Apache-2.0
// Merges the expectations of plan, profile and metrics for a stage.
#include "runner/app/stage/expectations.h"

#include <algorithm>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/slots.h"

namespace muster {
namespace {

constexpr double kLargestDropOfCpus = 0.5;

std::string scalarText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dumpJson(value);
}

/// "2s" and "2.0", as a matrix and a parameter have it, are one value.
bool sameValue(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto one = parseQuantity(a), other = parseQuantity(b);
  return one.ok() && other.ok() && one->value == other->value &&
         (one->unit == other->unit || one->unit.empty() || other->unit.empty());
}

/// What a case does not say, as an imported one its test parameters, is not held against a limit.
bool hasParams(const Labels& known, const Labels& params) {
  return std::all_of(params.begin(), params.end(), [&](const auto& param) {
    const auto own = known.find(param.first);
    return own == known.end() || sameValue(own->second, param.second);
  });
}

bool reportedOn(const MetricSpec& metric, const std::string& backend) {
  return metric.backends.empty() || std::count(metric.backends.begin(), metric.backends.end(), backend) > 0;
}

}  // namespace

/// How many ranks the groups of the stage's sweep have, up to this one of `ranks` ranks on `nodes` nodes;
/// none where nodes differ.
static std::set<int> ranksOfSmaller(const Stage& stage, int ranks, int nodes) {
  if (stage.sweep.empty() || ranks % nodes != 0) return {};
  std::set<int> all = {ranks};
  for (const int listed : stage.sweep)
    if (listed > 0 && listed < nodes) all.insert(ranks / nodes * listed);
  return all;
}

std::set<std::string> metricsOn(const PluginSpec& plugin, const TestSpec& test, const std::string& backend) {
  std::set<std::string> metrics;
  for (const MetricSpec& metric : test.metrics)
    if (reportedOn(metric, backend)) metrics.insert(plugin.name + "." + metric.name);
  return metrics;
}

std::set<std::string> leaderMetricsOn(const PluginSpec& plugin, const TestSpec& test, Scope scope) {
  std::set<std::string> metrics;
  for (const MetricSpec& metric : test.metrics)
    if (metric.leader && scope != Scope::kDevice) metrics.insert(plugin.name + "." + metric.name);
  return metrics;
}

std::map<std::string, std::set<std::string>> findingLabelsOf(const PluginSpec& plugin, const TestSpec& test) {
  std::map<std::string, std::set<std::string>> labels;
  for (const MetricSpec& metric : test.metrics)
    if (!metric.findingLabels.empty())
      labels[plugin.name + "." + metric.name].insert(metric.findingLabels.begin(),
                                                     metric.findingLabels.end());
  return labels;
}

void leaveOutUnmeasured(const PluginSpec& plugin, const TestSpec& test,
                        const std::vector<std::string>& caseIds, StageEvidence& evidence) {
  std::set<std::pair<std::string, std::string>> measured;
  for (const Measurement& m : evidence.measurements) measured.emplace(m.caseId, m.metric);
  // A case that the machine cannot run is skipped as a whole: its skip stands for what it would have
  // reported.
  std::set<std::string> unsupported;
  bool hasLeader = false;
  for (const CaseEnd& end : evidence.ends) {
    if (end.state == CaseEnd::State::kUnsupported) unsupported.insert(end.caseId);
    hasLeader = hasLeader || end.rank == 0;
  }
  for (const MetricSpec& metric : test.metrics) {
    const std::string name = plugin.name + "." + metric.name;
    // Only the node of the rank that reports a metric for the whole group can tell that nothing was measured.
    if (!metric.optional || (evidence.leaderMetrics.count(name) > 0 && !hasLeader)) continue;
    for (const std::string& id : caseIds)
      if (unsupported.count(id) == 0 && measured.count({id, name}) == 0) evidence.caseMetrics[id].erase(name);
  }
}

Labels knownLabels(const Case& c) {
  Labels labels;
  for (const auto& [name, value] : c.params.items()) {
    if (!value.is_array()) {
      labels[name] = scalarText(value);
      continue;
    }
    std::vector<std::string> items;
    for (const Json& item : value) items.push_back(scalarText(item));
    labels[name] = join(items, ",");
  }
  // A matrix value stands as the plan wrote it ("8 GiB"), which is how the case is named.
  for (const auto& [name, value] : c.matrix) labels[name] = value;
  return labels;
}

std::vector<Expectation> profileExpectations(const Profile& profile, const StageEvidence& evidence) {
  std::vector<Expectation> chosen;
  for (const Expectation& expectation : profile.expectations) {
    bool met = false, others = false;
    for (const auto& [id, metrics] : evidence.caseMetrics) {
      const auto found = evidence.caseLabels.find(id);
      Labels labels = found == evidence.caseLabels.end() ? Labels{} : found->second;
      labels[kStageParam] = evidence.stage;
      if (metrics.count(expectation.metric) == 0 || !canCarry(labels, expectation.where)) continue;
      (hasParams(labels, expectation.params) ? met : others) = true;
    }
    if (!met || others) continue;
    chosen.push_back(expectation);
    chosen.back().params.clear();  // from here on it is about this stage
  }
  return chosen;
}

std::vector<Expectation> standingExpectations(const TestSpec& test, const std::string& backend) {
  std::vector<Expectation> standing;
  for (const MetricSpec& metric : test.metrics)
    if (reportedOn(metric, backend))
      standing.insert(standing.end(), metric.standing.begin(), metric.standing.end());
  if (backend != "host") return standing;
  for (Expectation& e : standing) {
    if (e.kind != CheckKind::kDropMax) continue;
    e.severity = Severity::kWarn;
    e.warnBand = 0;  // it only warns anyway
    e.limit = std::max(e.limit, kLargestDropOfCpus);
    e.source = "built-in: the CPU is shared with other processes, so a drop alone does not prove a fault";
    e.remedy =
        "Other work used CPU time or memory: check the busiest process and steal time in the telemetry, then "
        "run again";
  }
  return standing;
}

StageEvidence expectedEvidence(const Stage& stage, const PluginSpec& plugin, const TestSpec& test,
                               const std::string& backend, int ranks, int nodes, const Profile* profile) {
  StageEvidence evidence;
  evidence.stage = stage.name;
  evidence.required = stage.required;
  evidence.allowFlaky = stage.allowFlaky;
  evidence.expectations = stage.expectations;
  evidence.leaderMetrics = leaderMetricsOn(plugin, test, stage.scope);
  evidence.findingLabels = findingLabelsOf(plugin, test);
  for (const Case& c : stage.cases) {
    evidence.caseMetrics[c.id] = metricsOn(plugin, test, backend);
    Labels& labels = evidence.caseLabels[c.id];
    labels = knownLabels(c);
    // What is expected of another size of group is not missing here. In scope device each rank is its own.
    const bool alone = stage.scope == Scope::kDevice;
    labels.emplace("ranks", std::to_string(alone ? 1 : ranks));
    labels.emplace("nodes", std::to_string(alone ? 1 : nodes));
  }
  evidence.sweep = !stage.sweep.empty();
  evidence.groupRanks = ranksOfSmaller(stage, ranks, nodes);
  const auto add = [&](const std::vector<Expectation>& more) {
    evidence.expectations.insert(evidence.expectations.end(), more.begin(), more.end());
  };
  if (profile != nullptr) add(profileExpectations(*profile, evidence));
  add(standingExpectations(test, backend));
  return evidence;
}

Status applyStageParams(const Profile& profile, const TestSpec& test, const std::string& qualifiedTest,
                        Case& c) {
  const auto fixed = profile.stageParams.find(qualifiedTest);
  if (fixed == profile.stageParams.end()) return {};
  for (const auto& [name, value] : fixed->second.items()) {
    if (c.written.count(name) > 0) continue;
    const std::string where = profile.path.string() + ": params of " + qualifiedTest;
    const ParamSpec* spec = test.param(name);
    if (spec == nullptr)
      return Error{ErrorCode::kUsage, "test " + qualifiedTest + " has no parameter \"" + name + "\"", where};
    MUSTER_TRY(c.params[name], convertParam(*spec, value).context("parameter " + name));
  }
  return {};
}

}  // namespace muster
