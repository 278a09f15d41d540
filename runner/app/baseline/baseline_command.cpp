// SPDX-License-Identifier: Apache-2.0
// `muster baseline learn`: from the records of a fleet to a SKU profile, and what was found on the way, in
// words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "runner/app/baseline/baseline_fleet.h"
#include "runner/app/baseline/baseline_options.h"
#include "runner/app/baseline/sku_facts.h"
#include "runner/app/input/judged_again.h"
#include "runner/app/input/record_input.h"
#include "runner/app/input/run_records.h"
#include "runner/app/process/print_error.h"
#include "runner/core/print.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/judge/slots.h"
#include "runner/record/evidence_json.h"
#include "runner/record/record.h"
#include "runner/sku/corrected_profile.h"
#include "runner/sku/physical.h"
#include "runner/sku/profile_writer.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostLines = 20;

Status checkOut(const BaselineOptions& options) {
  std::error_code error;
  if (options.out.extension() != ".toml")
    return Error{ErrorCode::kUsage, "a profile is a .toml file; give one with -o", options.out.string()};
  if (!options.force && fs::exists(options.out, error))
    return Error{ErrorCode::kUsage,
                 "this file exists; choose another -o, or use --force to overwrite it (`muster baseline "
                 "diff` shows the changes)",
                 options.out.string()};
  return {};
}

/// A profile for a SKU that none knows: the devices as the inventory shows them, without any limit. `memory`:
/// bytes of its first device, as most nodes have it.
Result<Profile> profileFromInventory(const Record& record, const fleet::NodeSummary& node, double memory) {
  const Json devices = record.inventory.value("devices", Json::array());
  if (!devices.is_array() || devices.empty() || !devices[0].is_object() || node.devices.empty())
    return Error{ErrorCode::kUsage, "the records list no device, so no profile matches; give --base FILE",
                 ""};
  Profile profile;
  profile.match.kind = "gpu";
  profile.description = node.devices.front().name;
  std::string pciId;
  JsonReader device(devices[0], "inventory.devices[0]");
  device.optional("kind", profile.match.kind);
  device.optional("pci_id", pciId);
  MUSTER_CHECK_OK(device.status());
  if (profile.match.kind == "gpu") {
    profile.match.names = {node.devices.front().name};
    profile.match.pciIds = {pciId};
    profile.match.memoryMin = std::floor(memory * (1 - kMemoryRoom) / 1e9) * 1e9;
    profile.match.memoryMax = std::ceil(memory * (1 + kMemoryRoom) / 1e9) * 1e9;
    profile.deviceCount = static_cast<int>(node.devices.size());
  }
  profile.peaks = devicePeaks(record);
  profile.facts["peaks_source"] = record.peaksFrom.empty() ? "device properties" : record.peaksFrom;
  return profile;
}

/// Whether the new profile starts from what the nodes say of themselves: they have none, and none is given.
bool startsFromNothing(const BaselineOptions& options, const fleet::NodeSummary& example) {
  return options.base.empty() && example.profileName.empty();
}

/// Taken from the fleet's example, whose records are `own`; `memory`: bytes of its first device, where it
/// starts from nothing. The text is one that has the digest: what a record says of its profile may be wrong.
Result<Profile> baseProfile(const BaselineOptions& options, const fleet::FleetRecords& records,
                            const std::vector<size_t>& own, double memory, const Tree& tree,
                            const Catalog& catalog) {
  const fleet::NodeSummary& node = records.nodes[own.front()];
  std::map<std::string, Json> params;
  Record record;
  for (const size_t i : own) {
    MUSTER_TRY(record, readRecord(options.run / records.nodes[i].path));
    MUSTER_CHECK_OK(checkUnchanged(record, records.nodes[i].sha256, records.nodes[i].path));
    params.merge(sharedParams(record));
  }
  Profile base;
  if (!options.base.empty()) {
    MUSTER_TRY(base, loadProfile(options.base, &catalog, {tree.plans / "skus"}));
    MUSTER_CHECK_OK(checkModel(base, record, "--base"));
  } else if (!node.profileName.empty()) {
    const std::string* text = records.names->profiles.find(node.profileSha256);
    if (text == nullptr)
      return Error{
          ErrorCode::kUsage,
          "the text of its profile has another digest than profile.sha256; give the profile by --base",
          node.path};
    MUSTER_TRY(base, parseProfile(*text, record.profile.path, &catalog)
                         .context("the profile in the records (give another by --base)"));
  } else {
    MUSTER_TRY(base, profileFromInventory(record, node, memory));
    base.stageParams = std::move(params);
    base.name = options.out.stem().string();
  }
  if (!options.name.empty()) base.name = options.name;
  if (!isPlainName(base.name) || base.name == "auto")
    return Error{ErrorCode::kUsage,
                 fmt::format("\"{}\" is not a profile name; set --name to letters, digits, '-', '_' and '.'",
                             printable(base.name, 80)),
                 ""};
  return base;
}

void printList(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  printText("\n{}\n", title);
  for (size_t i = 0; i < lines.size() && i < kMostLines; ++i) printText("  {}\n", printable(lines[i], 600));
  if (lines.size() > kMostLines) printText("  and {} more\n", lines.size() - kMostLines);
}

std::vector<std::string> leftOutLines(const LearnInput& input, const Learned& learned) {
  std::vector<std::string> lines;
  for (const LearnNode& node : input.nodes)
    if (!node.sick.empty()) lines.push_back(fmt::format("{}: {}", node.name, node.sick));
  for (const LeftOut& left : learned.leftOut) {
    const LearnNode& node = input.nodes[static_cast<size_t>(left.node)];
    const std::string device = left.device < 0 ? "" : " " + node.devices[static_cast<size_t>(left.device)];
    lines.push_back(fmt::format("{}{}: {}", node.name, device, left.why));
  }
  return lines;
}

void printLimits(const LearnInput& input, const Learned& learned, const LearnedProfile& result) {
  const auto end = result.profile.expectations.begin() + static_cast<std::ptrdiff_t>(result.learned);
  printText("\n{:<66} {:>14} {:>7} {:>16} {:>6} {:>8}\n", "learned", "value", "sigma", "limit", "n",
            "catches");
  for (const LearnedLimit& limit : learned.limits) {
    const LearnGroup& group = input.groups[limit.group];
    if (std::none_of(result.profile.expectations.begin(), end, [&](const Expectation& e) {
          return e.metric == group.metric && e.where == group.where && e.params == group.params;
        }))
      continue;
    const bool lower = group.direction == Direction::kLower;
    const double bound = limit.value * (lower ? 1 + limit.tolerance : 1 - limit.tolerance);
    printText("{:<66} {:>14} {:>7} {:>2} {:>13} {:>6} {:>8}\n", printable(group.text(), 120),
              formatQuantity(limit.value, group.unit), formatQuantity(limit.sigma, "ratio", 2),
              lower ? "<=" : ">=", formatQuantity(bound, group.unit), limit.n,
              formatQuantity(limit.caught, "ratio", 2));
  }
  printText(
      "catches: smallest slowdown this limit rejects with 99% probability; `muster fleet` detects smaller "
      "outliers\n");
}

void printFindings(const FleetToLearn& fleet, const Learned& learned, const LearnedProfile& result) {
  const LearnInput& input = fleet.input;
  if (fleet.simulated) printText("SIMULATED: values of scenario {}\n", fleet.provenance.scenario);
  printText("{} nodes of plan {}: {} used, {} failed or outliers\n", input.nodes.size(),
            fleet.provenance.plan, learned.used, learned.sick.size());
  printList("remarks", fleet.remarks);
  printList("left out", leftOutLines(input, learned));
  printLimits(input, learned, result);
  std::vector<std::string> lines;
  for (const auto& [group, why] : learned.notLearned) lines.push_back(why);
  lines.insert(lines.end(), result.unused.begin(), result.unused.end());
  printList("not learned", lines);
  lines.clear();
  for (const LearnedLimit& limit : learned.limits)
    if (input.physical[limit.group].most <= 0 && input.groups[limit.group].direction == Direction::kHigher)
      lines.push_back(input.groups[limit.group].text());
  printList("not checked against a physical limit, because the profile has none", lines);
}

/// Whether a verdict says no more than that a rate or time misses the profile's limit, which may be wrong.
bool isMissedLimit(const Verdict& verdict, const LearnInput& input) {
  if (verdict.outcome != Outcome::kFail || !verdict.expectation ||
      !verdict.expectation->origin.starts_with("profile "))
    return false;
  return std::any_of(input.groups.begin(), input.groups.end(), [&](const LearnGroup& group) {
    return group.metric == verdict.metric && isBound(*verdict.expectation, group.direction);
  });
}

/// The first verdict that makes a node no example even where limits of the profile are wrong; empty: none.
std::string faultBesideLimits(const Record& record, const LearnInput& input) {
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      if (speaksAgainst(verdict.outcome) && !isMissedLimit(verdict, input))
        return fmt::format("{}{} {}", verdict.metric.empty() ? stage.name : verdict.metric,
                           verdict.device.empty() ? "" : " of " + verdict.device,
                           outcomeName(verdict.outcome));
  return "";
}

void printCorrections(const FleetToLearn& fleet, const CorrectedProfile& result) {
  if (fleet.simulated) printText("SIMULATED: values of scenario {}\n", fleet.provenance.scenario);
  printList("remarks", fleet.remarks);
  printList("left out", leftOutLines(fleet.input, {}));
  std::vector<std::string> lines[2];
  for (const Correction& one : result.corrections)
    lines[one.looser ? 0 : 1].push_back(
        fmt::format("{}: {}, was {}; measured {}", one.what, one.after, one.before, one.measured));
  printList("looser; check that the machine is healthy: its median misses the limit", lines[0]);
  printList("tighter", lines[1]);
  printList("confirmed, kept as before", result.confirmed);
  printList("not counted: measured by too few nodes", result.notCounted);
  printText("\n{} limits corrected, {} confirmed, {} kept without a measurement\n", result.corrections.size(),
            result.confirmed.size(), result.kept);
}

std::string headComment(const FleetToLearn& fleet, const Learned& learned, const LearnOptions& options) {
  return fmt::format(
      "{}Learned by `muster baseline learn` from {} nodes on {}. Format: plans/README.md.\n"
      "All limits together reject at most {} of healthy nodes ({} confidence for each limit).",
      fleet.simulated ? "SIMULATED: no value here was measured.\n" : "", learned.used, fleet.provenance.date,
      formatQuantity(options.falseRejects, "ratio"), formatQuantity(options.confidence, "ratio"));
}

std::string headComment(const FleetToLearn& fleet, const CorrectedProfile& result, const Profile& base) {
  return fmt::format(
      "{}{} limits of profile {} corrected by `muster baseline learn --correct` on {}: see their sources. "
      "Format: plans/README.md.",
      fleet.simulated ? "SIMULATED: no value here was measured.\n" : "", result.corrections.size(), base.name,
      fleet.provenance.date);
}

Result<double> shareOption(const std::string& text, const char* name, double least, double most) {
  MUSTER_TRY(const double share, parseAs(text, "ratio").context(name));
  if (share >= least && share <= most) return share;
  return Error{ErrorCode::kUsage,
               fmt::format("{} is {}, expected {} to {}", name, printable(text, 40),
                           formatQuantity(least, "ratio"), formatQuantity(most, "ratio")),
               ""};
}

/// Writes a profile once it can be read as a run would read it. Beside one of another name, here `usual`,
/// that the same devices match, a run takes it by name only.
Result<int> writeProfile(const std::string& text, const fs::path& path, const std::string& usual,
                         const Catalog& catalog) {
  auto again = parseProfile(text, path, &catalog);
  if (!again.ok())
    return Error{ErrorCode::kInternal, "the learned profile cannot be read: " + again.error().text(), ""};
  MUSTER_CHECK_OK(writeFileAtomically(path, text));
  const std::string out = shellQuote(path.string());
  printText(
      "\nwritten: {} (profile {}, sha256 {})\nnext: muster judge RECORD --sku {}   or   muster run PLAN "
      "--skus {}{}\n",
      out, again->name, again->sha256.substr(0, 12), out,
      path.has_parent_path() ? shellQuote(path.parent_path().string()) : ".",
      again->match.onlyByName || again->name != usual ? " --sku " + again->name : "");
  return kExitAccepted;
}

Result<int> correct(const BaselineOptions& options, const FleetToLearn& fleet, const Profile& base,
                    const Catalog& catalog) {
  MUSTER_TRY(const double tolerance, shareOption(options.tolerance, "--tolerance", 0.001, 0.5));
  MUSTER_TRY(const CorrectedProfile result, correctedProfile(base, fleet.input, tolerance, fleet.provenance)
                                                .context("correcting by " + options.run.string()));
  printCorrections(fleet, result);
  if (result.corrections.empty()) {
    printText("nothing to correct: no profile was written\n");
    return kExitAccepted;
  }
  return writeProfile(profileToml(result.profile, headComment(fleet, result, base)), options.out,
                      fleet.profileName, catalog);
}

Result<int> learn(const BaselineOptions& options, const FleetToLearn& fleet, const Profile& base,
                  const Catalog& catalog) {
  MUSTER_TRY(const Learned learned,
             learnLimits(fleet.input, options.learn).context("learning from " + options.run.string()));
  const LearnedProfile result = learnedProfile(base, fleet.input, learned, options.learn, fleet.provenance);
  printFindings(fleet, learned, result);
  return writeProfile(profileToml(result.profile, headComment(fleet, learned, options.learn)), options.out,
                      fleet.profileName, catalog);
}

/// Moves records that something contradicts, and those that were judged again, to the quarantined: one must
/// not keep anybody from learning from the others.
void setAsideUnusable(fleet::FleetRecords& records, const fs::path& run) {
  PredicateTime call{PredicateTime::kOfCall};
  const auto check = [&](const fleet::NodeSummary& node) -> Status {
    if (node.rejudged)
      return Error{ErrorCode::kUsage,
                   fmt::format("it was re-judged by `muster judge`; limits are only learned from original "
                               "records: use the record of the run itself (sha256 {})",
                               node.rejudged->from.front().substr(0, 12)),
                   ""};
    MUSTER_TRY(const Record record, soundRecordAt(run / node.path, call));
    return checkUnchanged(record, node.sha256, node.path);
  };
  std::vector<fleet::NodeSummary> usable;
  for (fleet::NodeSummary& node : records.nodes)
    if (const Status sound = check(node); sound.ok())
      usable.push_back(std::move(node));
    else
      records.quarantined.push_back({node.path, node.node, sound.error().message});
  records.nodes = std::move(usable);
}

Result<fleet::FleetRecords> readRecords(const BaselineOptions& options) {
  MUSTER_TRY(const auto paths, fleet::findRecords(options.run));
  MUSTER_TRY(const auto slurm, RecordsOfAnyRun::open(paths, options.unconfirmed));
  auto records = fleet::readEach(
      {paths.size(),
       [&](fleet::RecordReader& reader, size_t i) {
         reader.keepSpreads();
         return slurm.read(reader, paths[i], options.run);
       },
       [&](size_t i) { return validUtf8(paths[i].lexically_relative(options.run).string()); }},
      fleet::readerThreads());
  setAsideIncomplete(records);
  setAsideUnusable(records, options.run);
  return records;
}

/// The test parameters that the cases of a group have in common, but for what its labels say.
Labels paramsOf(const LearnGroup& group, const StageEvidence& evidence) {
  std::optional<Labels> common;
  for (const auto& [id, metrics] : evidence.caseMetrics) {
    const auto labels = evidence.caseLabels.find(id);
    if (metrics.count(group.metric) == 0 || labels == evidence.caseLabels.end() ||
        !canCarry(labels->second, group.where))
      continue;
    if (!common) common = labels->second;
    std::erase_if(*common, [&](const auto& param) {
      const auto own = labels->second.find(param.first);
      return own == labels->second.end() || own->second != param.second;
    });
  }
  if (!common) return {};
  std::erase_if(*common, [&](const auto& param) {
    const std::string& name = param.first;
    return name == "ranks" || name == "nodes" || group.where.count(name) > 0 ||
           (name.ends_with('s') && group.where.count(name.substr(0, name.size() - 1)) > 0);
  });
  return *common;
}

Status addParams(const Record& record, LearnInput& input) {
  for (const StageRecord& stage : record.stages) {
    MUSTER_TRY(const StageEvidence evidence, evidenceFromRecord(stage));
    for (LearnGroup& group : input.groups)
      if (group.stage == stage.name && group.params.empty() && stage.state == StageState::kRan) {
        group.params = paramsOf(group, evidence);
        group.params[kStageParam] = stage.name;
      }
  }
  return {};
}

/// Checks that each record is sound and the one that was read before. Returns what each node says of its SKU,
/// where the new profile starts from nothing.
Result<std::vector<SkuFacts>> checkEach(const BaselineOptions& options, const fleet::FleetRecords& records,
                                        bool fromNothing, FleetToLearn& fleet) {
  std::vector<SkuFacts> facts(fleet.records.size());
  for (size_t n = 0; n < fleet.records.size(); ++n) {
    LearnNode& node = fleet.input.nodes[n];
    if (options.correct && !node.misfit) node.sick.clear();
    for (const size_t i : fleet.records[n]) {
      MUSTER_TRY(const Record sound, recordAt(options.run / records.nodes[i].path));
      MUSTER_CHECK_OK(checkUnchanged(sound, records.nodes[i].sha256, records.nodes[i].path));
      if (fromNothing) facts[n].add(skuFacts(sound));
      if (!node.misfit) MUSTER_CHECK_OK(addParams(sound, fleet.input));
      if (options.correct && !node.misfit && node.sick.empty())
        node.sick = faultBesideLimits(sound, fleet.input);
    }
  }
  return facts;
}

}  // namespace

Result<int> baselineLearn(BaselineOptions& options) {
  MUSTER_CHECK_OK(checkOut(options));
  MUSTER_TRY(options.learn.falseRejects, shareOption(options.falseRejects, "--false-rejects", 1e-6, 0.1));
  MUSTER_TRY(options.learn.confidence, shareOption(options.confidence, "--confidence", 0.5, 0.999));
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, options.pluginFolders, {}));
  MUSTER_TRY(fleet::FleetRecords records, readRecords(options));
  MUSTER_TRY(FleetToLearn fleet,
             fleetToLearn(records, !options.base.empty()).context("learning from " + options.run.string()));
  const bool fromNothing = startsFromNothing(options, records.nodes[fleet.records[fleet.example].front()]);
  MUSTER_TRY(const std::vector<SkuFacts> facts, checkEach(options, records, fromNothing, fleet));
  if (fleet.simulated && !options.allowSimulated)
    return Error{
        ErrorCode::kUsage,
        fmt::format("these records are SIMULATED (scenario {}): their values come from a scenario, not from "
                    "hardware; add --allow-simulated to learn anyway, which marks the profile SIMULATED",
                    fleet.provenance.scenario),
        options.run.string()};
  MUSTER_TRY(const double memory,
             fromNothing ? agreeOnSku(facts, fleet).context("learning from " + options.run.string())
                         : Result<double>(0.0));
  MUSTER_TRY(const Profile base,
             baseProfile(options, records, fleet.records[fleet.example], memory, tree, catalog));
  for (const LearnGroup& group : fleet.input.groups)
    fleet.input.physical.push_back(physicalLimit(group, base));
  // What is not learned stays as the base has it: limits of a scenario must not lose their mark.
  if (!fleet.simulated) MUSTER_CHECK_OK(checkOrigin(base, false));
  Result<int> done =
      options.correct ? correct(options, fleet, base, catalog) : learn(options, fleet, base, catalog);
  // Why there may be too few of them.
  if (!done.ok())
    for (const std::string& remark : fleet.remarks) printError(remark);
  return done;
}

}  // namespace muster
