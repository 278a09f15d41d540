// SPDX-License-Identifier: Apache-2.0
// Documents of each schema and everything that reads them: a reader gives an error or a value that all its
// users can work with. What is read twice, by the node's reports and by the fleet, must say the same.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "kernels/sim/sim_inventory.h"
#include "reports/acceptance/requirements.h"
#include "reports/fleet/fleet_record.h"
#include "reports/fleet/read/interrupted_run.h"
#include "reports/fleet/render/fleet_html.h"
#include "reports/fleet/render/fleet_terminal.h"
#include "reports/history/store/kept_fleet.h"
#include "reports/html/html.h"
#include "reports/junit/junit.h"
#include "reports/terminal/terminal.h"
#include "runner/app/baseline/baseline_fleet.h"
#include "runner/app/input/judged_again.h"
#include "runner/app/node/node_inventory.h"
#include "runner/app/node/run_folder.h"
#include "runner/app/node/waiver_input.h"
#include "runner/app/stage/expectations.h"
#include "runner/core/text.h"
#include "runner/host/request.h"
#include "runner/inputs/toml_input.h"
#include "runner/judge/waivers.h"
#include "runner/record/evidence_json.h"
#include "runner/record/record_check.h"
#include "runner/sku/profile_writer.h"
#include "runner/slurm/drain.h"
#include "runner/slurm/submission.h"
#include "runner/system/files.h"
#include "tests/fuzz/targets.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/plan/sample_catalog.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kNow = 1795219200;  // 2026-11-21 00:00 UTC
constexpr int kColumns = 100;

/// "" for an error that is the document's; control characters are taken out where errors are printed.
std::string faultOf(const Error& error) {
  if (error.message.empty()) return "an error says nothing";
  return error.code == ErrorCode::kInternal ? "it is taken for a fault of Muster: " + error.text() : "";
}

const fs::path& workFolder() {
  static const TempDir kFolder;
  return kFolder.path();
}

const fs::path& templates() {
  static const TemplatesFolder kTemplates;
  return kTemplates.path();
}

void put(const fs::path& path, const std::string& content) {
  fs::remove(path);  // some file systems write at once what replaces a file's content: a hundred times slower
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(content.data(), 1, content.size(), file) != content.size()) std::abort();
  std::fclose(file);
}

/// Every document of a folder of the sources.
std::vector<Json> tomlDocuments(const char* folder) {
  const char* source = std::getenv("MUSTER_SOURCE");
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(source == nullptr ? "." : source) / folder))
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Json> documents;
  for (const fs::path& path : paths) {
    // With what it includes: no file is read while documents are mutated.
    auto input = InputText::of(readFile(path).value(), path, 1 << 20, InputText::From::kDisk);
    documents.push_back(readTomlInput(input.value()).value().root());
  }
  return documents;
}

/// A record is a hundred times as large; what it can hold is all here.
Record small(Record record) {
  const auto isLeftOut = [](const std::string& device) {
    return !device.empty() && device != "gpu0" && device != "gpu3" && device != "gpu5";
  };
  const auto leaveOut = [&](auto& items) {
    std::erase_if(items, [&](const auto& item) { return isLeftOut(item.device); });
  };
  if (record.stages.size() > 3) record.stages.resize(3);
  for (StageRecord& stage : record.stages) {
    leaveOut(stage.ranks);
    leaveOut(stage.measurements);
    leaveOut(stage.verdicts);
    leaveOut(stage.telemetry);
    stage.telemetry.resize(std::min<size_t>(stage.telemetry.size(), 2));
    StageEvidence evidence;
    evidence.stage = stage.name;
    for (const CaseRecord& item : stage.cases)
      evidence.ends.push_back({item.id, 0, "gpu0", 1, CaseEnd::State::kOk, "", ""});
    for (const Verdict& verdict : stage.verdicts)
      if (verdict.expectation && evidence.expectations.size() < 4)
        evidence.expectations.push_back(*verdict.expectation);
    for (const Measurement& m : stage.measurements) evidence.caseMetrics[m.caseId].insert(m.metric);
    evidence.externalLoad.push_back({"env", 1, 0.1, 0.2, 0.3, "make"});
    stage.evidence = evidenceToJson(evidence);
  }
  Json& devices = record.inventory["devices"];
  while (devices.size() > 2) devices.erase(devices.size() - 1);
  settle(record);
  return record;
}

std::vector<Record> records() {
  Record grouped = nodeRecord("n1");
  grouped.stages.back().scope = Scope::kCluster;
  grouped.stages.back().group = {{"world_size", 3},
                                 {"first_rank", 0},
                                 {"nodes", 3},
                                 {"id", "0123456789abcdef"},
                                 {"around",
                                  {{{"node_rank", 0}, {"node", "n0"}, {"first_rank", 0}, {"ranks", 1}},
                                   {{"node_rank", 1}, {"node", "n1"}, {"first_rank", 1}, {"ranks", 1}}}},
                                 {"culprit", ""}};
  Record again = rejudgedRecord();
  again.node = "n1";
  again.runId = nodeRecord("n1").runId;
  Record sick = sickRecord();
  sick.node = "n1";
  sick.runId = nodeRecord("n1").runId;
  std::vector<Record> all = {small(nodeRecord("n1")), small(failedRecord("n1")), small(grouped), small(again),
                             small(sick)};
  all[1].waiverFile = {"", "waivers.toml", sha256Hex("x"), "schema = 1\n"};
  all[1].waivers = {{"gemm",
                     "compute.gemm_throughput",
                     {{"dtype", "bf16"}},
                     "gpu3",
                     "",
                     "n1",
                     "riser on order",
                     "J. Doe",
                     "2026-12-31",
                     "waivers.toml:3:1",
                     WaiverState::kUnmatched,
                     0,
                     "nothing was waived"}};
  return all;
}

Samples recordSamples() {
  Samples samples;
  for (const Record& record : records()) samples.documents.push_back(toJson(record));
  return samples;
}

/// What `muster report` and `muster judge` do with a record.
std::string checkRecordReaders(const std::string& text) {
  const Result<Json> json = parseJson(text);
  if (!json.ok()) return faultOf(json.error());
  const Result<Record> record = recordFromJson(*json);
  if (!record.ok()) return faultOf(record.error());
  const std::string written = recordText(*record);
  const Result<Json> rewritten = parseJson(written);
  const Result<Record> reread =
      rewritten.ok() ? recordFromJson(*rewritten) : Result<Record>(rewritten.error());
  if (!reread.ok()) return "what was read and written cannot be read: " + reread.error().text();
  if (recordText(*reread) != written) return "the same record has two texts";
  const std::string summary = renderSummary(*record, false, kColumns);
  for (const std::string& line : split(summary, '\n'))
    if (printable(line, line.size()) != line) return "its summary is not fit for a terminal";
  (void)renderJunit(*record);
  if (const auto html = renderHtml(*record, "", templates()); !html.ok()) return faultOf(html.error());
  PredicateTime call{PredicateTime::kOfCall};
  const Result<Record> again = judgedAgain(*record, std::string(64, 'a'), {}, {}, call);
  if (!again.ok()) return faultOf(again.error());
  if (const Status good = checkRecord(*again); !good.ok())
    return "judged again, it contradicts itself: " + good.error().text();
  return "";
}

/// Whoever edits a record must not show one thing to the fleet and another to people.
std::string disagreement(const fleet::NodeSummary& node, const std::string& text) {
  const Result<Json> json = parseJson(text);
  const Result<Record> record = json.ok() ? recordFromJson(*json) : Result<Record>(json.error());
  if (!record.ok()) return "";
  if (node.node != record->node || node.runId != printable(record->runId, 200))
    return "the fleet takes it for the record of another run than its report";
  if (node.acceptance != record->acceptance || node.exitCode != record->exitCode)
    return fmt::format("the fleet reads {} ({}), its report {} ({})", nameOf(node.acceptance), node.exitCode,
                       nameOf(record->acceptance), record->exitCode);
  if (node.simulated != record->simulated || node.strict != record->strict)
    return "the fleet and the report differ in what kind of run it was";
  if (node.accounting.counts != record->accounting.counts)
    return "the fleet and the report count differently";
  return "";
}

/// What `muster fleet` and `muster baseline learn` do with a record.
std::string checkFleetReaders(const std::string& text) {
  std::string problem;
  fleet::FleetOptions options;
  const auto read = [&](fleet::RecordReader& reader, size_t) -> Result<fleet::NodeSummary> {
    auto node = reader.parse(text);
    if (!node.ok()) problem = faultOf(node.error());
    if (node.ok()) problem = disagreement(*node, text);
    if (node.ok()) options.expected.push_back({node->node, "", false});
    return node;
  };
  fleet::FleetRecords records = fleet::readEach({1, read, [](size_t) { return "n1/record.json"; }}, 1);
  if (!problem.empty() || records.nodes.empty()) return problem;
  const auto fleet = fleet::assess(records, options);
  if (!fleet.ok()) return faultOf(fleet.error());
  const std::string json = fleet::fleetText(*fleet, records);
  if (const auto kept = parseJson(json); !kept.ok())
    return "the fleet record is no JSON: " + kept.error().text();
  for (const std::string& line : split(fleet::renderFleetSummary(*fleet, kColumns), '\n'))
    if (printable(line, line.size()) != line) return "the fleet's summary is not fit for a terminal";
  if (const auto html = fleet::renderFleetHtml(*fleet, records, sha256Hex(json), templates()); !html.ok())
    return faultOf(html.error());
  const auto learned = fleetToLearn(records, false);
  return learned.ok() ? "" : faultOf(learned.error());
}

std::string checkKeptFleet(const std::string& text) {
  put(workFolder() / "fleet.json", text);
  const auto fleet = history::readFleetIn(workFolder());
  return fleet.ok() ? "" : faultOf(fleet.error());
}

Samples keptFleetSamples() {
  FleetFolder folder;
  folder.add(nodeRecord("n1"));
  folder.add(failedRecord("n2"));
  const fleet::Fleet fleet = folder.assess({"n1", "n2", "n3"});
  Json rejected = parseJson(fleet::fleetText(fleet, folder.records())).value();
  FleetFolder other;
  other.add(nodeRecord("n1"));
  return {{}, {}, {rejected, parseJson(fleet::fleetText(other.assess({"n1"}), other.records())).value()}};
}

/// What `muster run --resume`, `muster fleet` and `muster slurm` do with the folder of a run that was cut.
std::string checkJournal(const std::string& text) {
  const fs::path folder = workFolder() / "run";
  fs::create_directories(folder);
  put(folder / "journal.jsonl", text);
  if (const auto cut = fleet::readInterruptedRun(folder, "run"); !cut.ok())
    if (std::string problem = faultOf(cut.error()); !problem.empty()) return problem;
  const Result<RunFolder> run = RunFolder::open(folder);
  if (!run.ok()) return faultOf(run.error());
  const Result<Journal> journal = run->readJournal();
  if (!journal.ok()) return faultOf(journal.error());
  if (const auto waivers = waiversOf(journal->run); !waivers.ok()) return faultOf(waivers.error());
  if (journal->stages.empty()) return "";
  const Result<NodeInventory> inventory = inventoryFromJson(journal->stages.front().extra);
  if (!inventory.ok()) return faultOf(inventory.error());
  (void)inventory->devices();
  NodeProgress node;
  useInventory(*inventory, false, node);
  return "";
}

Samples journalSamples() {
  const Record record = small(nodeRecord("n1"));
  NodeInventory inventory;
  inventory.facts = record.inventory;
  const Json frozen = {{"type", "run"},
                       {"record_schema", kRecordSchema},
                       {"run_id", record.runId},
                       {"started", record.started},
                       {"boot_id", record.bootId},
                       {"node", record.node},
                       {"build", record.buildId},
                       {"plan_path", "/plans/node-quick.toml"},
                       {"plan_sha256", record.plan.sha256},
                       {"plan_text", record.plan.text},
                       {"sets", {"gemm.size=64"}},
                       {"plugin_folders", Json::array()},
                       {"sku_folders", Json::array()},
                       {"sku", "auto"},
                       {"scenario", ""},
                       {"waivers_path", "waivers.toml"},
                       {"waivers_text", "schema = 1\n"},
                       {"scopes", {"device"}},
                       {"fleet_id", "f1"},
                       {"node_names", Json::array()},
                       {"node_rank", 0},
                       {"node_count", 1},
                       {"seed", 42},
                       {"strict", false},
                       {"no_gpu_skip", false}};
  Json lines = Json::array({frozen, Json{{"type", "start"}}});
  for (const StageRecord& stage : record.stages) {
    lines.push_back({{"type", "stage"}, {"virtual_end", 1.5}, {"stage", toJson(stage)}});
    if (lines.size() == 3) lines.back()["extra"] = toJson(inventory);
  }
  return {{}, {}, {lines}, DocumentFormat::kJsonLines};
}

std::string checkWaivers(const std::string& text) {
  const auto waivers = parseWaivers(text, "waivers.toml", kNow);
  return waivers.ok() ? "" : faultOf(waivers.error());
}

Samples waiverSamples() {
  const Json waiver = {{"stage", "gemm"},
                       {"metric", "compute.gemm_throughput"},
                       {"where", {{"dtype", "bf16"}}},
                       {"node", "n17"},
                       {"device", "gpu3"},
                       {"reason", "riser on order"},
                       {"approver", "J. Doe"},
                       {"expires", "2026-12-31"}};
  const Json part = {{"stage", "gemm"},      {"metric", "compute.gemm_throughput"},
                     {"serial", "16523240"}, {"reason", "riser on order"},
                     {"approver", "J. Doe"}, {"expires", "2026-12-31"}};
  return {{}, {}, {{{"schema", 1}, {"waiver", {waiver, part}}}}, DocumentFormat::kToml};
}

std::string checkRequirements(const std::string& text) {
  const auto requirements = parseRequirements(text, "requirements.toml");
  if (!requirements.ok()) return faultOf(requirements.error());
  for (const Clause& clause : requirements->clauses)
    if (clause.id.empty() || (clause.stages.empty() && clause.metrics.empty()))
      return "a clause without evidence";
  return requirements->clauses.empty() ? "requirements without a clause" : "";
}

/// What is read is also written, by `muster baseline learn`, and read again.
std::string checkProfile(const std::string& text) {
  static const Catalog kCatalog = sampleCatalog();
  if (const auto checked = parseProfile(text, "profile.toml", &kCatalog); !checked.ok())
    if (std::string problem = faultOf(checked.error()); !problem.empty()) return problem;
  const auto profile = parseProfile(text, "profile.toml", nullptr);
  if (!profile.ok()) return faultOf(profile.error());
  const auto again = parseProfile(profileToml(*profile, "comment"), "again.toml", nullptr);
  if (!again.ok()) return "what was read and written cannot be read: " + again.error().text();
  (void)profileExpectations(*profile, {});
  const auto chosen =
      chooseSku({{profile->name, *profile}}, "auto",
                {{"gpu0", "gpu", "NVIDIA H100 80GB HBM3", "10de:2330", 85520809984.0, "", ""}});
  return chosen.ok() ? "" : faultOf(chosen.error());
}

std::string checkScenario(const std::string& text) {
  auto scenario = sim::parseScenario(text, "scenario.toml", 2);
  if (!scenario.ok()) return faultOf(scenario.error());
  const auto shared = std::make_shared<const sim::Scenario>(std::move(*scenario));
  sim::SimInventory inventory(shared, sim::buildUnits(shared, 1, 42), 1, 2, 0);
  (void)inventory.devices();
  (void)inventory.node();
  (void)inventory.health(100, "");
  return "";
}

std::string checkRequest(const std::string& text) {
  const auto json = parseJson(text);
  if (!json.ok()) return faultOf(json.error());
  const auto request = requestFromJson(*json);
  if (!request.ok()) return faultOf(request.error());
  return request->groupRank >= 0 && request->groupRank < request->groupSize ? "" : "its rank is in no group";
}

Samples requestSamples() {
  const Json device = {{"id", "gpu3"}, {"index", 3}, {"cpus", {0, 1}}};
  const Json context = {{"scope", "node"},  {"rank", 3},       {"world_size", 8},       {"backend", "sim"},
                        {"scenario", "s"},  {"node_rank", 0},  {"virtual_start", 12.5}, {"seed", 42},
                        {"device", device}, {"local_rank", 3}, {"run_id", "r"},         {"stage", "gemm"}};
  const Json cases = {
      {{"index", 0}, {"case", "a"}, {"repeat", 0}, {"attempt", 1}, {"params", {{"size", 8}}}},
      {{"index", 1}, {"case", "b"}, {"repeat", 1}, {"attempt", 1}, {"params", {{"size", 9}}}}};
  return {{},
          {},
          {{{"schema", 1},
            {"plugin", "/p/compute.so"},
            {"test", "gemm"},
            {"artifact_dir", "/a"},
            {"grace", 2},
            {"abandon_after", 5},
            {"affinity", {0, 1}},
            {"context", context},
            {"cases", cases}}}};
}

/// A run on Slurm with one job of each kind.
const slurm::RunStore& slurmRun() {
  static const slurm::RunStore kRun = [] {
    slurm::Submission run;
    run.id = "r1";
    run.planName = "node-quick";
    run.planFile = "node-quick.toml";
    run.scenarioFile = "s.toml";
    run.nodes = {"n1", "n2"};
    run.options = {"--seed", "3"};
    run.fleetOptions = {"--strict"};
    run.jobs.mounts = {"/data:/data"};
    slurm::RunStore made = slurm::RunStore::create(workFolder() / "slurm", run).value();
    using slurm::JobKind;
    for (const auto& [kind, nodes] : std::initializer_list<std::pair<JobKind, std::vector<std::string>>>{
             {JobKind::kArray, {}}, {JobKind::kPinned, {"n2"}}, {JobKind::kCluster, {"n1", "n2"}}})
      if (!made.append({kind, std::to_string(100 + static_cast<int>(kind)), 1, nodes, 2}).ok()) std::abort();
    if (!made.appendCancelled("101").ok()) std::abort();
    return made;
  }();
  return kRun;
}

std::string textIn(const char* name) {
  return readFile(slurmRun().folder() / name).value();
}

/// What every command of `muster slurm` reads first. Its names become paths.
std::string checkSubmission(const std::string& text) {
  put(slurmRun().folder() / "slurm.json", text);
  const auto run = slurm::RunStore::open(slurmRun().folder());
  if (!run.ok()) return faultOf(run.error());
  for (const std::string& node : run->submission().nodes)
    for (const fs::path& path :
         {run->nodeFolder(node), run->exit(node), run->claim(node), run->nodeKey(node)})
      if (path.lexically_normal() != path || path.filename() != node)
        return "a path leads elsewhere: " + path.string();
  const fs::path plan = run->input(run->submission().planFile);
  return plan.lexically_normal().parent_path() == run->folder() / "inputs" ? "" : "the plan lies elsewhere";
}

Samples submissionSamples() {
  return {{}, {}, {parseJson(textIn("slurm.json")).value()}};
}

/// jobs.jsonl and drained.jsonl: each reads the other's lines too.
std::string checkSlurmLog(const std::string& text) {
  for (const char* name : {"jobs.jsonl", "drained.jsonl"}) put(slurmRun().folder() / name, text);
  const auto jobs = slurmRun().jobs();
  if (!jobs.ok())
    if (std::string problem = faultOf(jobs.error()); !problem.empty()) return problem;
  const auto drained = slurm::drainedByRun(slurmRun());
  if (!drained.ok()) return faultOf(drained.error());
  (void)slurm::planUndrain(slurmRun().submission(), *drained, {});
  return "";
}

Samples slurmLogSamples() {
  Json jobs = Json::array(), drained = Json::array();
  for (const std::string& line : split(textIn("jobs.jsonl"), '\n'))
    if (!line.empty()) jobs.push_back(parseJson(line).value());
  for (const char* action : {"drain", "drain", "undrain"})
    drained.push_back({{"action", action}, {"node", "n1"}, {"reason", "muster: r1: gpu3"}});
  return {{}, {}, {jobs, drained}, DocumentFormat::kJsonLines};
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> kTargets = {
      {"record", checkRecordReaders, recordSamples},
      {"fleet-record", checkFleetReaders, recordSamples},
      {"fleet", checkKeptFleet, keptFleetSamples},
      {"journal", checkJournal, journalSamples},
      {"waiver", checkWaivers, waiverSamples},
      {"requirements", checkRequirements,
       [] {
         return Samples{{}, {}, tomlDocuments("plans/requirements"), DocumentFormat::kToml};
       }},
      {"profile", checkProfile,
       [] {
         return Samples{{}, {}, tomlDocuments("plans/skus"), DocumentFormat::kToml};
       }},
      {"scenario", checkScenario,
       [] {
         return Samples{{}, {}, tomlDocuments("plans/scenarios"), DocumentFormat::kToml};
       }},
      {"request", checkRequest, requestSamples},
      {"slurm-run", checkSubmission, submissionSamples},
      {"slurm-log", checkSlurmLog, slurmLogSamples},
  };
  return kTargets;
}

}  // namespace muster::testing
