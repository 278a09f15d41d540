// SPDX-License-Identifier: Apache-2.0
// See node_run.h: how a run begins, with its folders, its frozen inputs, the inventory and the SKU profile.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/app/node/inventory_changes.h"
#include "runner/app/node/node_run.h"
#include "runner/app/node/outputs.h"
#include "runner/app/node/partial_run.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/inputs/toml_input.h"
#include "runner/record/evidence_json.h"
#include "runner/record/record_check.h"
#include "runner/record/record_mac.h"
#include "runner/sku/network_peaks.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr const char* kProfileFile = "profile.toml";
/// Beside the inventory in the journal: the digest of the profile in force, empty for none.
constexpr const char* kProfileKey = "profile_sha256";

std::vector<std::string> absolutePaths(const std::vector<fs::path>& paths) {
  std::vector<std::string> absolute;
  absolute.reserve(paths.size());
  for (const fs::path& path : paths) absolute.push_back(fs::absolute(path).string());
  return absolute;
}

}  // namespace

Error wrongKind(const Profile& profile, const std::string& where, const std::string& kind) {
  return Error{ErrorCode::kUsage,
               fmt::format("SKU profile {} is for devices of kind {}, and {} has devices of kind {}; name a "
                           "profile of that kind, or use --sku auto",
                           profile.name, profile.match.kind, where, kind),
               ""};
}

const std::string& requiredSku(const Plan& plan, const RunOptions& options) {
  static const std::string automatic = "auto";
  if (!options.sku.empty()) return options.sku;
  return !options.scenario.empty() && plan.backend == "host" ? automatic : plan.sku;
}

const std::string& backendOf(const RunSetup& setup) {
  static const std::string simulated = kSimulatedBackend;
  return setup.options->scenario.empty() ? setup.plan.backend : simulated;
}

std::optional<Record> NodeRun::endedRecord(const Journal& journal) const {
  std::set<std::string> done;
  for (const JournalStage& entry : journal.stages) done.insert(entry.stage.name);
  for (const Stage& stage : setup_.plan.stages)
    if (done.count(stage.name) == 0 && !leavesOut(stage.name)) return std::nullopt;
  auto record = readRecord(folder_.path() / "record.json");
  if (!record.ok() || record->acceptance == Acceptance::kInterrupted) return std::nullopt;
  // The last start may have been killed before it wrote one: then this is that of an earlier start.
  if (record->runId != journal.run.value("run_id", "") || record->resumed != journal.starts)
    return std::nullopt;
  const std::string& key = setup_.options->recordKey;
  if (!key.empty() && !checkMac(recordText(*record), key).ok()) return std::nullopt;
  return std::move(*record);
}

Result<Record> NodeRun::showEnded(Record record) const {
  const fs::path& folder = folder_.path();
  setup_.view->runStarted(record, folder);
  setup_.view->note(
      fmt::format("this run ended at {}: its result stands, and nothing runs again; to measure "
                  "again, start a new run with --out",
                  formatUtc(record.finished)));
  // One that was killed between its record and its reports.
  std::error_code error;
  if (!fs::exists(folder / "report.html", error) || !fs::exists(folder / "junit.xml", error))
    MUSTER_CHECK_OK(writeReports(record, sha256Hex(recordText(record)), folder, node_.tree.templates));
  setup_.view->runEnded(record, folder);
  return record;
}

Status NodeRun::makeFolders() {
  for (const char* name : {"artifacts", "requests", "output"})
    MUSTER_CHECK_OK(makeOwnSubfolder(folder_.path() / name, fmt::format("{} folder", name)));
  return {};
}

/// A new run writes its inputs to the journal; a resumed one takes them from there.
Status NodeRun::freeze(const Journal* earlier) {
  if (earlier == nullptr) {
    record_.started = systemClock().wallUnix();
    record_.runId = runIdOf(node_.node, record_.started);
    node_.runId = record_.runId;
    const RunOptions& options = *setup_.options;
    std::string scenario;
    if (node_.simulated()) {
      MUSTER_TRY(scenario, frozenToml(node_.scenario));
    }
    return folder_.appendRun({{"run_id", record_.runId},
                              {"started", record_.started},
                              {"boot_id", record_.bootId},
                              {"node", node_.node},
                              {"build", record_.buildId},
                              {"plan_path", fs::absolute(setup_.plan.path).string()},
                              {"plan_sha256", setup_.plan.sha256},
                              {"plan_text", setup_.plan.text},
                              {"sets", setup_.plan.overrides},
                              {"plugin_folders", absolutePaths(options.pluginFolders)},
                              {"sku_folders", absolutePaths(options.skuFolders)},
                              {"sku", options.sku},
                              {"scenario", node_.scenario.string()},
                              {"scenario_sha256", node_.simulated() ? sha256Hex(scenario) : ""},
                              {"waivers_sha256", setup_.waivers.sha256},
                              {"waivers_path", setup_.waivers.path},
                              {"waivers_text", setup_.waivers.text},
                              {"scopes", options.scopes},
                              {"only", options.selection.stages},
                              {"devices", options.selection.devices},
                              {"fleet_id", options.fleetId},
                              {"node_names", options.nodeNames},
                              {"node_rank", node_.nodeRank},
                              {"node_count", node_.nodeCount},
                              {"seed", node_.seed},
                              {"strict", options.strict},
                              {"no_gpu_skip", options.noGpuSkip}});
  }
  JsonReader reader(earlier->run, "journal.jsonl:1");
  reader.read("run_id", record_.runId);
  reader.read("started", record_.started);
  MUSTER_CHECK_OK(reader.status());
  node_.runId = record_.runId;
  record_.resumed = earlier->starts + 1;
  return folder_.appendStart();
}

Status NodeRun::chooseProfile(NodeInventory& inventory) {
  if (!inventory.facts.is_object()) return {};
  const std::string& sku = requiredSku(setup_.plan, *setup_.options);
  MUSTER_TRY(const SkuChoice choice, chooseSku(setup_.profiles, sku, inventory.devices()));
  // A plan's profile that no simulated device can be is a mistake of the command, as one in the scenario.
  const std::vector<DeviceFacts> devices = inventory.devices();
  const std::string required = choice.profile == nullptr ? "" : choice.profile->match.kind;
  const auto fits = [&](const DeviceFacts& device) { return device.kind == required; };
  if (node_.simulated() && !required.empty() && !devices.empty() &&
      std::none_of(devices.begin(), devices.end(), fits))
    return wrongKind(*choice.profile, "scenario " + node_.scenario.string(), devices.front().kind);
  inventory.skuHow = setup_.options->sku.empty() || sku == "auto" ? choice.how : "named by --sku";
  inventory.skuProblems = choice.problems;
  if (choice.profile == nullptr) return {};
  MUSTER_CHECK_OK(checkOrigin(*choice.profile, !node_.scenario.empty()));
  profile_ = *choice.profile;
  return folder_.keepFile(kProfileFile, profile_->text);
}

/// Puts what is known of the node into the record and shows it.
Status NodeRun::announce(const NodeInventory& inventory) {
  inventory_ = inventory;
  if (profile_) {
    progress_.profile = &*profile_;
    record_.profile = {profile_->name, profile_->path.string(), profile_->sha256, profile_->text,
                       profile_->includes};
  }
  useInventory(inventory, node_.simulated(), progress_);
  if (inventory.problem.empty()) MUSTER_CHECK_OK(checkDevices(record_.selection, progress_.devices));
  const PlanNetwork& network = setup_.plan.network;
  addNetworkPeaks(network.rails, network.railBandwidth, progress_.devices.size(), node_.nodeCount,
                  progress_.judge.peaks);
  if (network.rails > 0 || network.railBandwidth > 0) progress_.judge.peaksFrom += kNetworkOfPlan;
  record_.inventory = inventory.facts.is_object() ? inventory.facts : Json::object();
  record_.skuHow = inventory.problem.empty() ? inventory.skuHow : "unknown: " + inventory.problem;
  record_.peaks = progress_.judge.peaks;
  record_.peaksFrom = progress_.judge.peaksFrom;
  setup_.view->runStarted(record_, folder_.path());
  for (const char* name : {"LD_PRELOAD", "LD_AUDIT"})
    if (const auto found = record_.environment.find(name); found != record_.environment.end())
      setup_.view->note(
          fmt::format("warning: {}={}: this library is loaded into every process of the run and can change "
                      "results; unset it unless intended",
                      name, printable(found->second, 200)));
  if (record_.selection.partial())
    setup_.view->note(record_.selection.text() + "; its result is no acceptance of the node");
  progress_.announced = true;
  return {};
}

Status NodeRun::takeInventory() {
  MUSTER_TRY(const Stage stage, inventoryStage(setup_.catalog));
  MUSTER_TRY(StageOutcome outcome, runStage(node_, progress_, stage));
  MUSTER_TRY(StageEvidence evidence, evidenceFromRecord(outcome.record));
  NodeInventory inventory = readInventory(outcome.record, evidence, folder_.path());
  // A mistake in the scenario's files is the user's, as one in the plan: nothing runs.
  if (node_.simulated() && inventory.problem.starts_with((node_.scenario.parent_path() / "").string()))
    return Error{ErrorCode::kUsage, inventory.problem, ""};
  MUSTER_CHECK_OK(chooseProfile(inventory));
  MUSTER_CHECK_OK(announce(inventory));
  expectDevices(inventory, progress_.profile, evidence);
  outcome.accounting = judgeInto(outcome.record, evidence, progress_.judge);
  outcome.record.measurements = std::move(evidence.measurements);
  waive(outcome);
  Json extra = toJson(inventory);
  extra[kProfileKey] = profile_ ? profile_->sha256 : "";
  // One that was interrupted knows no device; the run that goes on takes it again.
  if (node_.cancelled->load() && !inventory.problem.empty())
    add(outcome.record, outcome.accounting);
  else
    MUSTER_CHECK_OK(keep(outcome, extra));
  if (!inventory.problem.empty())
    setup_.view->note(inventory.problem);
  else if (!satisfies(outcome.record.outcome))
    setup_.view->stageEnded(outcome.record);
  return {};
}

Status NodeRun::resumeInventory(const JournalStage& kept) {
  MUSTER_TRY(const NodeInventory inventory, inventoryFromJson(kept.extra));
  const fs::path frozen = folder_.path() / kProfileFile;
  std::string sha256, text;
  JsonReader reader(kept.extra, "journal.jsonl: inventory");
  reader.read(kProfileKey, sha256);
  MUSTER_CHECK_OK(reader.status());
  if (fs::exists(frozen)) {
    MUSTER_TRY(text, readFile(frozen));
  }
  if (sha256 != (fs::exists(frozen) ? sha256Hex(text) : ""))
    return Error{ErrorCode::kUsage,
                 "the SKU profile of the interrupted run was changed or removed; restore it, or start a new "
                 "run with --out",
                 frozen.string()};
  if (!sha256.empty()) {
    MUSTER_TRY(profile_, parseProfile(text, frozen, &setup_.catalog));
    MUSTER_CHECK_OK(checkOrigin(*profile_, !node_.scenario.empty()));
  }
  MUSTER_CHECK_OK(checkSameNode(inventory));
  MUSTER_CHECK_OK(announce(inventory));
  return {};
}

/// What the finished stages say holds for the parts and settings that they ran with. The inventory of the
/// start stays in the record; this one is kept below a name of its own.
Status NodeRun::checkSameNode(const NodeInventory& kept) {
  if (!kept.facts.is_object()) return {};
  MUSTER_TRY(Stage stage, inventoryStage(setup_.catalog));
  stage.name = fmt::format("{}.resume{}", kInventoryStage, record_.resumed);
  NodeProgress apart;
  MUSTER_TRY(const StageOutcome outcome, runStage(node_, apart, stage));
  if (node_.cancelled->load()) return {};  // nothing runs any more
  MUSTER_TRY(const StageEvidence evidence, evidenceFromRecord(outcome.record));
  const NodeInventory now = readInventory(outcome.record, evidence, folder_.path());
  if (!now.problem.empty())
    return Error{
        ErrorCode::kUsage,
        fmt::format("cannot check that this is still the node whose stages are finished: {}; fix that "
                    "and resume again, or start a new run with --out",
                    now.problem),
        folder_.path().string()};
  const std::vector<std::string> changes = inventoryChanges(kept.facts, now.facts);
  if (changes.empty()) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("the node changed since this run was started, so its finished stages no longer "
                           "count: {}; start a new run with --out",
                           join(changes, "; ")),
               folder_.path().string()};
}

}  // namespace muster
