// SPDX-License-Identifier: Apache-2.0
// `muster explain`: what a plan would run, and by which limits it would judge; runs nothing.
#include <fmt/format.h>

#include <algorithm>

#include "runner/app/input/plan_input.h"
#include "runner/app/prepare/prepare_options.h"
#include "runner/app/stage/duration_estimate.h"
#include "runner/app/stage/expectations.h"
#include "runner/app/stage/rank_slots.h"
#include "runner/app/stage/stage_telemetry.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/judge/slots.h"
#include "runner/plan/node_groups.h"
#include "runner/record/findings/deviations.h"
#include "runner/sku/network_peaks.h"

namespace muster {
namespace {

/// What one stage comes to on such a node.
struct ExplainedStage {
  Stage stage;  ///< with the parameters that the profile fixes
  int ranks = 0;
  int nodes = 1;                      ///< of its group
  std::string notRun;                 ///< why a run on so many nodes has no such group; empty: it has
  std::optional<double> seconds;      ///< estimated; none: its test names no times
  StageEvidence evidence;             ///< without measurements
  size_t ownLimits = 0;               ///< the first so many of its expectations; the others are of telemetry
  std::vector<std::string> unjudged;  ///< metrics that no limit is about
};

struct ExplainedPlan {
  Plan plan;
  std::string backend;
  std::optional<Profile> profile;  ///< none: it is known only once the devices are
  int devices = 1;
  int nodes = 1;
  std::vector<ExplainedStage> stages;  ///< in the order in which they run
};

/// Metrics that the stage reports and no limit is about.
std::vector<std::string> unjudgedOf(const StageEvidence& evidence) {
  std::set<std::string> metrics;
  for (const auto& [id, names] : evidence.caseMetrics) metrics.insert(names.begin(), names.end());
  for (const Expectation& expectation : evidence.expectations) metrics.erase(expectation.metric);
  return {metrics.begin(), metrics.end()};
}

/// What is sampled beside the stage, by the limits for that.
void addTelemetry(const ExplainedPlan& on, const Catalog& catalog, StageEvidence& evidence) {
  const PluginSpec* env = catalog.plugin("env");
  const TestSpec* test = env == nullptr ? nullptr : env->test("telemetry");
  if (test == nullptr) return;
  StageEvidence beside;
  beside.caseMetrics[StageTelemetry::kCaseId] = metricsOn(*env, *test, on.backend);
  std::vector<Expectation> limits = standingExpectations(*test, on.backend);
  if (on.profile)
    for (Expectation& limit : profileExpectations(*on.profile, beside)) limits.push_back(std::move(limit));
  evidence.expectations.insert(evidence.expectations.end(), limits.begin(), limits.end());
  evidence.caseMetrics.merge(beside.caseMetrics);
}

/// A node of a stage's group, as far as its time depends on it.
EstimatedNode estimatedNode(const ExplainedPlan& on, int localRanks, int nodes) {
  EstimatedNode node{localRanks, on.devices, nodes, 1, on.backend == "sim", on.backend != "host", {}, {}, 0};
  if (on.profile) {
    node.peaks = on.profile->peaks;
    node.limits = on.profile->expectations;
    node.memory = (on.profile->match.memoryMin + on.profile->match.memoryMax) / 2;
  }
  const PlanNetwork& network = on.plan.network;
  addNetworkPeaks(network.rails, network.railBandwidth, static_cast<size_t>(on.devices), nodes, node.peaks);
  if (const auto rails = node.peaks.find(kRails); rails != node.peaks.end())
    node.ports = std::max(1, static_cast<int>(rails->second + 0.5));
  return node;
}

Result<ExplainedStage> explainStage(const ExplainedPlan& on, const Stage& written, const Catalog& catalog) {
  const PluginSpec& plugin = *catalog.plugin(written.plugin);
  const TestSpec& test = *plugin.test(written.test);
  const Profile* profile = on.profile ? &*on.profile : nullptr;
  ExplainedStage explained;
  explained.stage = written;
  if (profile != nullptr)
    for (Case& c : explained.stage.cases)
      MUSTER_CHECK_OK(applyStageParams(*profile, test, written.plugin + "." + written.test, c));
  const bool cluster = written.scope == Scope::kCluster;
  const std::vector<RankSlot> devices(static_cast<size_t>(on.devices), RankSlot{0, "", Json::object()});
  const auto local = static_cast<int>(slotsFor(devices, written).size());
  const NodePart part = partOf(written, 0, on.nodes);
  explained.notRun = part.why;
  if (!part.why.empty()) {
    explained.seconds = 0;
    return explained;
  }
  if (cluster) explained.nodes = groupNodes(written, on.nodes);
  explained.ranks = local * explained.nodes;
  explained.seconds = estimatedSeconds(explained.stage, test, estimatedNode(on, local, explained.nodes));
  explained.evidence =
      expectedEvidence(explained.stage, plugin, test, on.backend, explained.ranks, explained.nodes, profile);
  explained.ownLimits = explained.evidence.expectations.size();
  if (StageTelemetry::watches(written)) addTelemetry(on, catalog, explained.evidence);
  explained.unjudged = unjudgedOf(explained.evidence);
  return explained;
}

double mostSeconds(const Stage& stage) {
  return stage.timeout * stage.attempts;
}

/// The estimates of all stages together, and which stages have none.
struct TotalEstimate {
  double seconds = 0;
  std::vector<std::string> without;

  [[nodiscard]] std::string text() const {
    if (seconds == 0) return "no estimated duration";
    return fmt::format("about {}{}", formatQuantity(seconds, "s", 2),
                       without.empty() ? "" : " without " + join(without, ", "));
  }
};

TotalEstimate totalOf(const std::vector<ExplainedStage>& stages) {
  TotalEstimate total;
  for (const ExplainedStage& one : stages) {
    total.seconds += one.seconds.value_or(0);
    if (!one.seconds) total.without.push_back(one.stage.name);
  }
  return total;
}

Json toJson(const ExplainedPlan& explained) {
  Json stages = Json::array();
  for (const ExplainedStage& one : explained.stages) {
    Json cases = Json::array(), limits = Json::array();
    for (const Case& c : one.stage.cases) cases.push_back({{"id", c.id}, {"params", c.params}});
    for (const Expectation& expectation : one.evidence.expectations) limits.push_back(toJson(expectation));
    stages.push_back({{"stage", one.stage.name},
                      {"test", one.stage.plugin + "." + one.stage.test},
                      {"scope", nameOf(one.stage.scope)},
                      {"ranks", one.ranks},
                      {"nodes", one.nodes},
                      {"not_run", one.notRun},
                      {"needs", one.stage.needs},
                      {"required", one.stage.required},
                      {"repeat", one.stage.repeat},
                      {"attempts", one.stage.attempts},
                      {"allow_flaky", one.stage.allowFlaky},
                      {"estimated_seconds", one.seconds ? Json(*one.seconds) : Json()},
                      {"most_seconds", mostSeconds(one.stage)},
                      {"cases", std::move(cases)},
                      {"limits", std::move(limits)},
                      {"not_judged", one.unjudged}});
  }
  const TotalEstimate total = totalOf(explained.stages);
  return {{"plan", {{"name", explained.plan.name}, {"sha256", explained.plan.sha256}}},
          {"sku", explained.profile ? explained.profile->name : ""},
          {"backend", explained.backend},
          {"nodes", explained.nodes},
          {"devices", explained.devices},
          {"estimated_seconds", total.seconds},
          {"not_estimated", total.without},
          {"stages", std::move(stages)}};
}

/// Parameters that all cases of a stage share, in base units.
std::string sharedParams(const Stage& stage) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : stage.cases.front().params.items())
    if (std::all_of(stage.cases.begin(), stage.cases.end(), [&](const Case& c) {
          const auto at = c.params.find(name);
          return at != c.params.end() && *at == value;
        }))
      texts.push_back(name + "=" + dumpJson(value));
  return join(texts, " ");
}

void printLimits(const StageEvidence& evidence, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) {
    const Expectation& e = evidence.expectations[i];
    if (isOfOtherGroup(e, evidence)) continue;
    printText("  limit   {}{}{}: {}{}  [{}{}]\n", e.metric, e.where.empty() ? "" : " ", labelsText(e.where),
              e.text(), e.severity == Severity::kWarn ? ", warns only" : "", e.origin,
              e.at.empty() ? "" : ", " + e.at);
    if (!e.source.empty()) printText("          source: {}\n", e.source);
  }
}

/// The limits on what is sampled beside stages are the same for each of them.
void printTelemetry(const std::vector<ExplainedStage>& stages) {
  const auto watched = [](const ExplainedStage& one) {
    return StageTelemetry::watches(one.stage) && one.notRun.empty();
  };
  const auto first = std::find_if(stages.begin(), stages.end(), watched);
  if (first == stages.end()) return;
  std::vector<std::string> names;
  for (const ExplainedStage& one : stages)
    if (watched(one)) names.push_back(one.stage.name);
  printText("\ntelemetry  beside {}\n", join(names, ", "));
  printLimits(first->evidence, first->ownLimits, first->evidence.expectations.size());
}

std::string durationText(const ExplainedStage& one) {
  const std::string most = "at most " + formatQuantity(mostSeconds(one.stage), "s");
  return one.seconds ? fmt::format("about {}, {}", formatQuantity(*one.seconds, "s", 2), most) : most;
}

void printStage(const ExplainedStage& one) {
  const Stage& stage = one.stage;
  std::vector<std::string> facts = {"scope " + std::string(nameOf(stage.scope)),
                                    plural(static_cast<size_t>(one.ranks), "rank"),
                                    plural(stage.cases.size(), "case"), durationText(one)};
  if (stage.repeat > 1) facts.push_back(fmt::format("{} runs of each case", stage.repeat));
  if (stage.attempts > 1) facts.push_back(fmt::format("up to {} attempts", stage.attempts));
  if (stage.allowFlaky) facts.emplace_back("a pass after a failed attempt is accepted");
  if (!stage.required) facts.emplace_back("may be skipped");
  if (!stage.needs.empty()) facts.push_back("after " + join(stage.needs, ", "));
  if (!one.notRun.empty())
    return printText("\n{}  {}.{}: not run: {}\n", stage.name, stage.plugin, stage.test, one.notRun);
  if (stage.nodes > 0) facts.insert(facts.begin() + 1, plural(static_cast<size_t>(one.nodes), "node"));
  printText("\n{}  {}.{}: {}\n", stage.name, stage.plugin, stage.test, join(facts, ", "));
  if (const std::string params = sharedParams(stage); !params.empty()) printText("  params  {}\n", params);
  if (stage.cases.size() > 1)
    for (const Case& c : stage.cases) printText("  case    {}\n", c.id);
  printLimits(one.evidence, 0, one.ownLimits);
  if (!one.unjudged.empty()) printText("  not judged  {}\n", join(one.unjudged, ", "));
}

void printPlan(const ExplainedPlan& explained) {
  size_t cases = 0, limits = 0;
  double seconds = 0;
  const TotalEstimate total = totalOf(explained.stages);
  for (const ExplainedStage& one : explained.stages) {
    cases += one.stage.cases.size();
    limits += one.evidence.expectations.size();
    if (one.notRun.empty()) seconds += mostSeconds(one.stage);
  }
  printText("plan {}, {}, backend {}, {} with {}\n{}, {}, {}, {}, at most {} by its timeouts\n",
            explained.plan.name,
            explained.profile ? "SKU " + explained.profile->name
                              : "SKU found by the devices at run time (--sku NAME shows its limits)",
            explained.backend, plural(static_cast<size_t>(explained.nodes), "node"),
            plural(static_cast<size_t>(explained.devices), "device"),
            plural(explained.stages.size(), "stage"), plural(cases, "case"), plural(limits, "limit"),
            total.text(), formatQuantity(seconds, "s"));
  for (const ExplainedStage& one : explained.stages) printStage(one);
  printTelemetry(explained.stages);
}

}  // namespace

Result<int> explainCommand(const ExplainOptions& options) {
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, options.pluginFolders, {}));
  MUSTER_TRY(const auto profiles, allProfiles(tree, options.skuFolders, &catalog));
  MUSTER_TRY(const PlanOptions planOptions, planOptionsFrom(options.sets, profiles));
  ExplainedPlan explained;
  MUSTER_TRY(explained.plan, requirePlan(loadPlan(options.plan, catalog, planOptions)));
  const std::string& sku = options.sku.empty() ? explained.plan.sku : options.sku;
  MUSTER_CHECK_OK(checkSkuName(sku, profiles));
  if (sku != "auto") explained.profile = profiles.at(sku);
  explained.backend = options.simulated ? "sim" : explained.plan.backend;
  explained.nodes = options.nodes;
  const int usual = explained.profile ? explained.profile->deviceCount : 0;
  explained.devices = options.devices > 0 ? options.devices : std::max(usual, 1);
  for (const size_t i : executionOrder(explained.plan)) {
    MUSTER_TRY(auto stage, explainStage(explained, explained.plan.stages[i], catalog));
    explained.stages.push_back(std::move(stage));
  }
  if (options.json)
    printJson(toJson(explained), 2);
  else
    printPlan(explained);
  return kExitAccepted;
}

}  // namespace muster
