// SPDX-License-Identifier: Apache-2.0
// `muster import`: other tools' results, judged by Muster's limits and kept apart from its own.
#include <fmt/format.h>

#include <algorithm>

#include "runner/app/input/import_limits.h"
#include "runner/app/input/plan_input.h"
#include "runner/app/judge/judge_options.h"
#include "runner/app/judge/record_output.h"
#include "runner/app/stage/expectations.h"
#include "runner/app/stage/stage_runner.h"
#include "runner/core/build_info.h"
#include "runner/core/clock.h"
#include "runner/core/digits.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/import/imported.h"
#include "runner/judge/slots.h"
#include "runner/record/fold/measurement_fold.h"
#include "runner/record/record_check.h"
#include "runner/sku/network_peaks.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestFile = 64u << 20;

/// What is said of a tool's file as a whole.
constexpr const char* kToolMetrics = R"json({"tests": [{
  "name": "tool", "backends": ["host"], "scopes": ["node"],
  "metrics": [
    {"name": "tool_failures", "unit": "count", "direction": "lower", "summary": "results that the tool itself calls failed",
     "standing": {"max": 0, "source": "what its own tool calls failed does not pass here",
                  "remedy": "See the tool's own output for the cause"}},
    {"name": "test_passed", "unit": "bool", "direction": "higher", "labels": ["test"], "summary": "the tool's own result of a test",
     "standing": {"min": 1, "source": "what its own tool calls failed does not pass here",
                  "remedy": "See the tool's own output for the cause"}},
    {"name": "tool_verdict", "unit": "text", "informational": true, "summary": "the tool's own verdict"},
    {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["name", "op"], "optional": true,
     "summary": "bytes per second of a job"},
    {"name": "operation_rate", "unit": "OP/s", "direction": "higher", "labels": ["name", "op"], "informational": true, "optional": true,
     "summary": "operations per second of a job"},
    {"name": "time", "unit": "s", "direction": "lower", "labels": ["name", "op", "statistic"], "informational": true, "optional": true,
     "summary": "time of an operation of a job"},
    {"name": "devices", "unit": "count", "informational": true, "summary": "devices that took part"}
  ]}]})json";

/// What imported files are judged by.
struct ImportRules {
  Catalog catalog;
  std::optional<Profile> profile;
  std::string how;
  std::optional<Plan> plan;
};

Result<Profile> namedProfile(const std::string& name, const Tree& tree, const Catalog& catalog) {
  // A plain name is a profile's, whatever file of that name somebody left in this folder.
  if (!isPlainName(name) || name.ends_with(".toml"))
    return loadProfile(name, &catalog, {tree.plans / "skus"});
  MUSTER_TRY(auto profiles, allProfiles(tree, {}, &catalog));
  MUSTER_CHECK_OK(checkSkuName(name, profiles));
  const auto at = profiles.find(name);
  if (at == profiles.end())
    return Error{ErrorCode::kUsage, "expected a profile's name or file: imported results match no devices",
                 "--sku " + printable(name, 80)};
  return std::move(at->second);
}

Result<ImportRules> rulesFor(const ImportOptions& options, const Tree& tree) {
  ImportRules rules;
  MUSTER_TRY(rules.catalog, describePlugins(tree, {}, {}));
  MUSTER_TRY(rules.catalog.plugins["imported"],
             pluginSpecFromDescribe("imported", Json::parse(kToolMetrics)));
  if (!options.plan.empty()) {
    MUSTER_TRY(rules.plan, requirePlan(loadPlan(options.plan, rules.catalog, {})));
  }
  std::string name = options.sku;
  rules.how = "named by `muster import --sku`";
  if (name.empty() && rules.plan && rules.plan->sku != "auto") {
    name = rules.plan->sku;
    rules.how = "named by the plan";
  }
  if (name.empty()) {
    rules.how = "unknown: imported files name no SKU; add --sku";
    return rules;
  }
  MUSTER_TRY(rules.profile, namedProfile(name, tree, rules.catalog));
  MUSTER_CHECK_OK(checkOrigin(*rules.profile, false));
  return rules;
}

/// Completes a value with what the catalog says of its metric.
Status complete(const Catalog& catalog, Measurement& m) {
  const MetricSpec* spec = catalog.metric(m.metric);
  if (spec == nullptr)
    return Error{ErrorCode::kInternal, "an importer gave a metric that no plugin has", m.metric};
  if (m.unit != spec->unit)
    return Error{ErrorCode::kInternal, "an importer gave it in " + m.unit + ", declared is " + spec->unit,
                 m.metric};
  m.direction = spec->direction;
  m.informational = spec->informational;
  m.peak = spec->peak;
  for (const auto& [key, value] : m.labels)
    if (const size_t at = m.peak.find("{" + key + "}"); at != std::string::npos)
      m.peak.replace(at, key.size() + 2, value);
  roundSamples(m.samples, m.unit, kSampleDigits);
  return {};
}

void addToolCase(const ImportedFile& file, StageEvidence& evidence) {
  evidence.caseMetrics[kToolCase] = {"imported.tool_failures", "imported.tool_verdict"};
  evidence.caseLabels[kToolCase] = {{"nodes", std::to_string(std::max<size_t>(1, file.hosts.size()))}};
  evidence.ends.push_back({kToolCase, 0, "", 1, CaseEnd::State::kOk, "", ""});
  const auto add = [&](const char* metric, double value) {
    Measurement m;
    m.metric = metric;
    m.unit = "count";
    m.samples = {value};
    m.caseId = kToolCase;
    evidence.measurements.push_back(std::move(m));
    return &evidence.measurements.back();
  };
  add("imported.tool_failures", file.failures);
  Measurement* said = add("imported.tool_verdict", 0);
  said->samples.clear();
  said->unit = "text";
  said->text = file.said.empty() ? "none" : file.said;
  if (file.ranks == 0) return;
  evidence.caseMetrics[kToolCase].insert("imported.devices");
  add("imported.devices", file.ranks);
}

bool canMeet(const StageEvidence& evidence, const Expectation& expectation) {
  return std::any_of(evidence.caseMetrics.begin(), evidence.caseMetrics.end(), [&](const auto& entry) {
    const auto labels = evidence.caseLabels.find(entry.first);
    return entry.second.contains(expectation.metric) &&
           canCarry(labels == evidence.caseLabels.end() ? Labels{} : labels->second, expectation.where);
  });
}

void addExpectations(const ImportRules& rules, StageEvidence& evidence) {
  auto& all = evidence.expectations;
  if (rules.plan)
    for (const Stage& stage : rules.plan->stages)
      std::copy_if(stage.expectations.begin(), stage.expectations.end(), std::back_inserter(all),
                   [&](const Expectation& e) { return canMeet(evidence, e); });
  if (rules.profile) {
    const auto profile = profileExpectations(*rules.profile, evidence);
    all.insert(all.end(), profile.begin(), profile.end());
  }
  std::set<std::string> metrics;
  for (const auto& [id, names] : evidence.caseMetrics) metrics.insert(names.begin(), names.end());
  for (const std::string& name : metrics)
    if (const MetricSpec* spec = rules.catalog.metric(name))
      all.insert(all.end(), spec->standing.begin(), spec->standing.end());
}

Result<StageEvidence> evidenceOf(const ImportRules& rules, const ImportedFile& file,
                                 const std::string& name) {
  StageEvidence evidence;
  evidence.stage = name;
  for (const ImportedCase& one : file.cases) {
    evidence.caseMetrics[one.id] = one.metrics;
    evidence.caseLabels[one.id] = one.labels;
    const auto state = one.error.empty() ? CaseEnd::State::kOk : CaseEnd::State::kError;
    if (one.devices.empty()) evidence.ends.push_back({one.id, 0, "", 1, state, one.error, ""});
    for (size_t rank = 0; rank < one.devices.size(); ++rank)
      evidence.ends.push_back({one.id, static_cast<int>(rank), one.devices[rank], 1, state, one.error, ""});
  }
  evidence.measurements = file.measurements;
  addToolCase(file, evidence);
  for (Measurement& m : evidence.measurements) MUSTER_CHECK_OK(complete(rules.catalog, m));
  addExpectations(rules, evidence);
  applyImportLimits(rules.profile ? &*rules.profile : nullptr, evidence);
  return evidence;
}

/// Why the tool and Muster come to different results; empty: they do not.
std::string differenceOf(const ImportedFile& file, const StageRecord& stage) {
  if (file.verdict == ToolVerdict::kNone || (file.verdict == ToolVerdict::kPassed) == isGood(stage.outcome))
    return "";
  return differenceText(file.limits, stage);
}

/// Of a file that names its metrics itself: those that no plugin has are told in the log. A known one in
/// another unit is refused.
Status keepKnown(const Catalog& catalog, const std::string& path, ImportedFile& file) {
  std::set<std::string> unknown;
  for (const Measurement& m : file.measurements) {
    const MetricSpec* spec = catalog.metric(m.metric);
    if (spec == nullptr)
      unknown.insert(m.metric);
    else if (spec->unit != m.unit)
      return Error{ErrorCode::kUsage,
                   fmt::format("{} is in \"{}\"; expected {}", m.metric, printable(m.unit, 40), spec->unit),
                   printable(path, 300)};
  }
  std::erase_if(file.measurements, [&](const Measurement& m) { return unknown.contains(m.metric); });
  for (ImportedCase& one : file.cases) {
    std::erase_if(one.metrics, [&](const std::string& metric) { return unknown.contains(metric); });
    if (one.metrics.empty() && one.error.empty()) one.error = "none of its values has a metric of a plugin";
  }
  for (const std::string& metric : unknown)
    file.notes.push_back("left out, because no plugin has this metric: " + printable(metric, 120));
  return {};
}

/// A file as it was read.
struct ReadFile {
  ImportedFile content;
  std::string path, sha256;
  uint64_t bytes = 0;
};

Result<std::vector<ReadFile>> readAll(const ImportRules& rules, const ImportOptions& options) {
  std::vector<ReadFile> files;
  for (const std::string& path : options.files) {
    MUSTER_TRY(const std::string text, readFile(path, kLargestFile));
    ReadFile file{{}, path, sha256Hex(text), text.size()};
    MUSTER_TRY(file.content, importText(text, path, options.format));
    if (file.content.ownNames) MUSTER_CHECK_OK(keepKnown(rules.catalog, path, file.content));
    if (rules.profile)
      MUSTER_CHECK_OK(checkDeviceNames(*rules.profile, file.content.deviceNames, "it", printable(path, 300)));
    for (const ReadFile& other : files)
      if (other.sha256 == file.sha256)
        return Error{ErrorCode::kUsage, "it has the same content as " + printable(other.path, 300),
                     printable(path, 300)};
    files.push_back(std::move(file));
  }
  return files;
}

/// The profile's peaks; those of the network are of the run with the most nodes.
void setPeaks(const ImportRules& rules, const std::vector<ReadFile>& files, Record& record) {
  if (!rules.profile) return;
  size_t nodes = 1;
  for (const ReadFile& file : files) nodes = std::max(nodes, file.content.hosts.size());
  const PlanNetwork network = rules.plan ? rules.plan->network : PlanNetwork();
  record.peaks = rules.profile->peaks;
  record.peaksFrom = "profile " + rules.profile->name;
  if (network.rails > 0 || network.railBandwidth > 0) record.peaksFrom += kNetworkOfPlan;
  addNetworkPeaks(network.rails, network.railBandwidth, static_cast<size_t>(rules.profile->deviceCount),
                  static_cast<int>(nodes), record.peaks);
}

StageRecord beginStage(const ImportedFile& file, size_t number) {
  StageRecord stage;
  stage.name = fmt::format("imported-{}-{}", number, file.format);
  stage.plugin = kImportedPlugin;
  stage.test = file.format;
  stage.scope = Scope::kNode;
  for (const ImportedCase& one : file.cases) {
    Json params = Json::object();
    for (const auto& [key, value] : one.labels) params[key] = value;
    stage.cases.push_back({one.id, std::move(params)});
  }
  stage.log = file.notes;
  return stage;
}

class Import {
 public:
  Import(const ImportRules& rules, Record& record) : rules_(rules), record_(record) {
    context_.peaks = record.peaks;
    context_.peaksFrom = record.peaksFrom;
  }

  Status add(const ReadFile& read) {
    const ImportedFile& file = read.content;
    StageRecord stage = beginStage(file, record_.imported.size() + 1);
    MUSTER_TRY(StageEvidence evidence, evidenceOf(rules_, file, stage.name));
    groupMeasurements(evidence.measurements);
    answerPredicates(evidence, context_, predicates_);
    count(judgeInto(stage, evidence, context_));
    stage.measurements = evidence.measurements;
    record_.imported.push_back({stage.name, printable(read.path, 1000), read.sha256, read.bytes, file.format,
                                file.tool, file.said, differenceOf(file, stage), file.deviceNames});
    record_.stages.push_back(std::move(stage));
    all_.push_back(std::move(evidence));
    return {};
  }

  /// A plan's limits that no file can meet are not met by leaving files out.
  void addMissing() {
    if (!rules_.plan) return;
    for (const Stage& stage : rules_.plan->stages) {
      const auto open =
          std::find_if(stage.expectations.begin(), stage.expectations.end(), [&](const Expectation& e) {
            return std::none_of(all_.begin(), all_.end(),
                                [&](const StageEvidence& evidence) { return canMeet(evidence, e); });
          });
      const PluginSpec* plugin = rules_.catalog.plugin(stage.plugin);
      const TestSpec* test = plugin == nullptr ? nullptr : plugin->test(stage.test);
      const std::string own = stage.plugin + ".";
      const bool measured = std::any_of(all_.begin(), all_.end(), [&](const StageEvidence& evidence) {
        return std::any_of(evidence.measurements.begin(), evidence.measurements.end(),
                           [&](const Measurement& m) {
                             return m.metric.starts_with(own) &&
                                    (test == nullptr || test->metric(m.metric.substr(own.size())) != nullptr);
                           });
      });
      if (open == stage.expectations.end() && measured) continue;
      const std::string what = open == stage.expectations.end()
                                   ? "a value of " + stage.plugin + "." + stage.test
                                   : open->metric + " " + labelsText(open->where);
      StageOutcome skipped = stageNotRun(stage, StageState::kSkipped, "no imported file holds " + what);
      count(skipped.accounting);
      record_.stages.push_back(std::move(skipped.record));
    }
  }

 private:
  void count(const Accounting& accounting) {
    record_.accounting.expected += accounting.expected;
    record_.accounting.requiredSkips += accounting.requiredSkips;
    for (size_t i = 0; i < accounting.counts.size(); ++i)
      record_.accounting.counts[i] += accounting.counts[i];
  }

  const ImportRules& rules_;
  Record& record_;
  JudgeContext context_;
  PredicateTime predicates_;
  std::vector<StageEvidence> all_;
};

Record beginRecord(const ImportRules& rules, const ImportOptions& options) {
  Record record;
  record.toolVersion = toolVersion();
  record.buildId = buildId();
  record.node = "imported";
  record.started = record.finished = systemClock().wallUnix();
  record.runId = runIdOf(record.node, record.started);
  record.backend = kImportedBackend;
  record.strict = true;  // a value without a limit is no evidence
  record.command = options.command;
  record.plan = {"imported", "", sha256Hex(""), ""};
  if (rules.plan)
    record.plan = {rules.plan->name, rules.plan->path.string(), rules.plan->sha256, rules.plan->text,
                   rules.plan->includes};
  record.skuHow = rules.how;
  if (rules.profile) {
    record.profile = {rules.profile->name, rules.profile->path.string(), rules.profile->sha256,
                      rules.profile->text, rules.profile->includes};
  }
  return record;
}

}  // namespace

Result<int> importCommand(const ImportOptions& options) {
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const ImportRules rules, rulesFor(options, tree));
  MUSTER_TRY(const std::vector<ReadFile> files, readAll(rules, options));
  Record record = beginRecord(rules, options);
  setPeaks(rules, files, record);
  Import all(rules, record);
  for (const ReadFile& file : files) MUSTER_CHECK_OK(all.add(file));
  all.addMissing();
  DecisionInput input;
  input.accounting = record.accounting;
  input.strict = record.strict;
  input.unknownSku = !rules.profile;
  const Decision decision = decide(input);
  record.acceptance = decision.acceptance;
  record.exitCode = decision.exitCode;
  record.reasons = decision.reasons;
  return showRecord(record, options.out, tree.templates);
}

}  // namespace muster
