// SPDX-License-Identifier: Apache-2.0
// See judged_again.h.
#include "runner/app/input/judged_again.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/app/input/import_limits.h"
#include "runner/app/node/node_inventory.h"
#include "runner/app/node/waiver_input.h"
#include "runner/app/stage/expectations.h"
#include "runner/core/build_info.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/plan/lua/predicate.h"
#include "runner/record/evidence_json.h"
#include "runner/record/record_check.h"
#include "runner/sku/network_peaks.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMismatchMetric = "env.sku_mismatches";

bool isFromProfile(const Expectation& expectation) {
  return expectation.origin.rfind("profile ", 0) == 0;
}

void addTo(Accounting& sum, const Accounting& accounting) {
  sum.expected += accounting.expected;
  sum.requiredSkips += accounting.requiredSkips;
  for (size_t i = 0; i < accounting.counts.size(); ++i) sum.counts[i] += accounting.counts[i];
}

/// The limits of the new profile take the place of those of the record's own.
void replaceLimits(const Profile& by, const StageRecord& stage, StageEvidence& evidence) {
  auto& all = evidence.expectations;
  std::erase_if(all, isFromProfile);
  const auto fresh = profileExpectations(by, evidence);
  all.insert(all.end(), fresh.begin(), fresh.end());
  if (stage.name == kInventoryStage) expectDeviceCount(&by, evidence);
  if (stage.plugin == kImportedPlugin && evidence.state == StageState::kRan) applyImportLimits(&by, evidence);
}

Status judgeAgain(StageRecord& stage, const std::optional<Profile>& by, JudgeContext context,
                  const Waivers& waivers, const WaivedNode& node, PredicateTime& time, Accounting& sum) {
  MUSTER_TRY(StageEvidence evidence, evidenceFromRecord(stage));
  if (by) replaceLimits(*by, stage, evidence);
  answerPredicates(evidence, context, time);
  Accounting accounting = judgeInto(stage, evidence, context);
  applyWaivers(waivers.list, node, stage.verdicts, accounting);
  stage.outcome = worstOutcome(stage.verdicts);
  addTo(sum, accounting);
  return {};
}

/// What the verdicts of all stages may take in memory: those of eight GPUs take ten megabytes.
constexpr size_t kMostVerdictBytes = size_t{256} << 20;

size_t bytesOf(const std::vector<Verdict>& verdicts) {
  size_t bytes = 0;
  for (const Verdict& v : verdicts) {
    bytes += sizeof v + v.detail.size() + v.limitText.size() + v.observedText.size() + v.remedy.size();
    if (v.expectation) bytes += v.expectation->source.size() + v.expectation->remedy.size();
  }
  return bytes;
}

void decideAgain(Record& record, const Accounting& accounting) {
  DecisionInput input;
  input.accounting = accounting;
  input.partial = record.selection.text();
  input.strict = record.strict;
  input.interrupted = wasInterrupted(record.acceptance, record.reasons);
  input.noGpuSkip = record.acceptance == Acceptance::kNoGpu;
  input.unknownSku = record.profile.name.empty();
  input.allowUnknownSku = record.allowUnknownSku;
  input.onlyIdle = isOnlyIdle(record.stages);
  input.flakyAllowed = allowsEachFlaky(record.stages);
  const Decision decision = decide(input);
  record.accounting = accounting;
  record.acceptance = decision.acceptance;
  record.exitCode = decision.exitCode;
  record.reasons = decision.reasons;
}

/// The waivers of `file`, or the record's own as they were when it was made. What an earlier judgement said
/// of them is taken out of the record.
Result<Waivers> waiversInForce(Record& record, const fs::path& file) {
  auto& stages = record.stages;
  stages.erase(std::remove_if(stages.begin(), stages.end(),
                              [](const StageRecord& stage) { return stage.name == kWaiverStage; }),
               stages.end());
  if (!file.empty()) return readWaivers(file, systemClock().wallUnix());
  if (record.waiverFile.sha256.empty()) return Waivers{};
  MUSTER_TRY(Waivers waivers, parseWaivers(record.waiverFile.text, record.waiverFile.path, record.started));
  waivers.sha256 = record.waiverFile.sha256;
  return waivers;
}

/// The profile file that --sku names; by a profile's name alone it is told where that one lies.
Result<Profile> profileAt(const fs::path& path, const Tree& tree) {
  std::error_code error;
  const fs::path shipped = tree.plans / "skus" / (path.string() + ".toml");
  if (isPlainName(path.string()) && fs::exists(shipped, error))
    return Error{ErrorCode::kUsage,
                 fmt::format("expected a profile file: for this name, {}; for a file of this name here, ./{}",
                             shipped.string(), path.string()),
                 "--sku " + path.string()};
  return loadProfile(path, nullptr, {tree.plans / "skus"});
}

/// Expectations without a remedy get that of their metric, where its plugin is installed.
Status giveRemedies(Profile& profile, const Tree& tree) {
  const auto silent = [](const Expectation& e) { return e.remedy.empty(); };
  if (std::none_of(profile.expectations.begin(), profile.expectations.end(), silent)) return {};
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, {}, {}));
  for (Expectation& e : profile.expectations)
    if (const MetricSpec* metric = catalog.metric(e.metric); metric != nullptr && silent(e))
      e.remedy = metric->remedy;
  return {};
}

/// The devices of a node and the number of nodes. An imported record has no inventory: they are those of the
/// profile, and of the file with the most nodes.
Result<std::pair<size_t, int>> sizeOf(const Profile& by, const Record& record) {
  if (record.imported.empty())
    return std::pair(record.inventory.value("devices", Json::array()).size(), record.nodeCount);
  int nodes = 1;
  for (const StageRecord& stage : record.stages) {
    MUSTER_TRY(const StageEvidence evidence, evidenceFromRecord(stage));
    nodes = std::max(nodes, importedNodes(evidence));
  }
  return std::pair(static_cast<size_t>(by.deviceCount), nodes);
}

/// The profile's peaks; but a network that the plan stated stays what it is.
Status usePeaksOf(const Profile& profile, const Record& record, JudgeContext& context) {
  context.peaks = profile.peaks;
  context.peaksFrom = "profile " + profile.name;
  const bool stated = record.peaksFrom.ends_with(kNetworkOfPlan);
  for (const auto& [name, peak] : record.peaks)
    if (stated && (name == kRailPeak || name.starts_with(kNodePeak))) context.peaks[name] = peak;
  if (stated) context.peaksFrom += kNetworkOfPlan;
  MUSTER_TRY(const auto size, sizeOf(profile, record));
  addNetworkPeaks(0, 0, size.first, size.second, context.peaks);
  return {};
}

/// Takes from `call` what the Lua of a record used of `given`. kTimeout where it was given less than it
/// needs because other records used up what all have.
Status charge(double given, const PredicateTime& time, PredicateTime& call) {
  call.left -= std::max(0.0, given - time.left - PredicateTime::kOfRecord);
  if (time.left > 0 || given >= PredicateTime::kOfReader) return {};
  return Error{
      ErrorCode::kTimeout,
      fmt::format("not evaluated: its Lua takes more than {:.0f} s of CPU time, and the {:.0f} s that "
                  "all records of one command have beyond that are used up; give it alone",
                  PredicateTime::kOfRecord, PredicateTime::kOfCall),
      ""};
}

}  // namespace

Result<Record> judgedAgain(Record record, const std::string& sha256, const JudgeOptions& options,
                           const Tree& tree, PredicateTime& call) {
  Rejudgement again{sha256, systemClock().wallUnix(), toolVersion(), buildId(), "", "", "", options.strict};
  std::optional<Profile> profile;  // the new one
  JudgeContext context;
  context.peaks = record.peaks;
  context.peaksFrom = record.peaksFrom;
  if (!options.profile.empty()) {
    MUSTER_TRY(profile, profileAt(options.profile, tree));
    MUSTER_CHECK_OK(checkOrigin(*profile, record.simulated));
    MUSTER_CHECK_OK(checkModel(*profile, record, "--sku"));
    MUSTER_CHECK_OK(giveRemedies(*profile, tree));
    record.profile = {profile->name, profile->path.string(), profile->sha256, profile->text,
                      profile->includes};
    record.skuHow = "named by `muster judge --sku`";
    again.profile = profile->name;
    again.profileSha256 = profile->sha256;
    if (!profile->peaks.empty()) MUSTER_CHECK_OK(usePeaksOf(*profile, record, context));
  }
  record.strict = record.strict || options.strict;
  record.peaks = context.peaks;
  record.peaksFrom = context.peaksFrom;
  Accounting accounting;
  MUSTER_TRY(const Waivers waivers, waiversInForce(record, options.waivers));
  const WaivedNode node = waivedNode(record);
  const double given =
      std::min(PredicateTime::kOfReader, std::max(call.left, 0.0) + PredicateTime::kOfRecord);
  PredicateTime time{given};
  const size_t devices = record.inventory.value("devices", Json::array()).size();
  size_t bytes = 0;
  for (StageRecord& stage : record.stages) {
    const Outcome before = stage.outcome;
    MUSTER_CHECK_OK(
        judgeAgain(stage, profile, contextOf(stage, devices, context), waivers, node, time, accounting));
    for (ImportedRecord& item : record.imported)
      if (item.stage == stage.name) compareAgain(stage, before, item);
    bytes += bytesOf(stage.verdicts);
    if (bytes > kMostVerdictBytes)
      return Error{ErrorCode::kUsage,
                   fmt::format("judged again, the check results of its stages take more than {} MiB",
                               kMostVerdictBytes >> 20),
                   stage.name};
  }
  MUSTER_CHECK_OK(charge(given, time, call));
  if (auto unmatched = settleWaivers(record, waivers)) {
    addTo(accounting, unmatched->accounting);
    record.stages.push_back(std::move(unmatched->record));
  }
  decideAgain(record, accounting);
  if (!options.waivers.empty()) again.waiversSha256 = waivers.sha256;
  record.rejudged.push_back(std::move(again));
  record.mac.clear();  // it was of the run's own record
  return record;
}

Status checkModel(const Profile& profile, const Record& record, const std::string& option) {
  const std::string where = option + " " + profile.path.string();
  for (const ImportedRecord& item : record.imported)
    MUSTER_CHECK_OK(checkDeviceNames(profile, item.deviceNames, item.stage, where));
  NodeInventory inventory;
  inventory.facts = record.inventory;
  if (record.inventory.value("devices", Json::array()).empty()) return {};
  MUSTER_TRY(const SkuChoice choice, chooseSku({{profile.name, profile}}, profile.name, inventory.devices()));
  double counted = 0;
  for (const StageRecord& stage : record.stages)
    for (const Measurement& m : stage.measurements)
      if (m.metric == kMismatchMetric && !m.samples.empty()) counted = m.samples.front();
  if (static_cast<double>(choice.problems.size()) <= counted) return {};
  return Error{ErrorCode::kUsage,
               printable(choice.problems.front(), 300) + "; expected the profile of the record's devices",
               where};
}

}  // namespace muster
