// SPDX-License-Identifier: Apache-2.0
// `muster fleet`: many nodes' records into one fleet record and report.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "reports/acceptance/acceptance_document.h"
#include "reports/fleet/decision.h"
#include "reports/fleet/fleet_record.h"
#include "reports/fleet/render/fleet_html.h"
#include "reports/fleet/render/fleet_terminal.h"
#include "runner/app/fleet/fleet_command.h"
#include "runner/app/input/record_input.h"
#include "runner/app/input/run_records.h"
#include "runner/app/node/outputs.h"
#include "runner/app/node/waiver_input.h"
#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/hosts/host_list.h"
#include "runner/hosts/topology_file.h"
#include "runner/judge/exit_code.h"
#include "runner/plan/plan_text.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/record_mac.h"
#include "runner/sku/profile.h"
#include "runner/slurm/scheduler.h"
#include "runner/slurm/scripts.h"
#include "runner/slurm/witness.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr double kSlurmPatience = 1200;    // seconds; the fleet job has an hour
constexpr unsigned kSlurmPause = 5000000;  // microseconds
constexpr std::string_view kSkuKey = "sku=";

Error wrongLine(const fs::path& file, size_t line, const std::string& problem) {
  return {ErrorCode::kUsage, problem, fmt::format("{}:{}", file.string(), line)};
}

/// Calls `take(line number, text)` for every line that holds something; '#' begins a comment.
template <typename F>
Status eachLine(const fs::path& file, F take) {
  MUSTER_TRY(const std::string text, readFile(file));
  size_t number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(std::string_view(whole).substr(0, whole.find('#')));
    if (!line.empty()) MUSTER_CHECK_OK(take(number, std::string(line)));
  }
  return {};
}

/// A name of a SKU at the begin of `text`, in quotes where it has spaces; `text` is what follows.
std::string takeName(std::string& text) {
  const bool quoted = text.starts_with('"');
  const size_t end = quoted ? text.find('"', 1) : text.find_first_of(" \t");
  std::string name = text.substr(quoted ? 1 : 0, end == std::string::npos ? end : end - (quoted ? 1 : 0));
  text = end == std::string::npos ? ""
                                  : std::string(trim(std::string_view(text).substr(end + (quoted ? 1 : 0))));
  return name;
}

/// "node[1-4]", with the SKU that they must be of: "node[1-4] sku=h200-sxm", and with what the scheduler
/// says: "node7 down Not responding", "node8 drained bad DIMM".
Result<std::vector<fleet::ExpectedNode>> readExpected(const fs::path& file) {
  std::vector<fleet::ExpectedNode> nodes;
  MUSTER_CHECK_OK(eachLine(file, [&](size_t number, const std::string& line) -> Status {
    const size_t space = line.find_first_of(" \t");
    const std::string list = line.substr(0, space);
    std::string said(space == std::string::npos ? "" : trim(std::string_view(line).substr(space)));
    std::string sku;
    if (said.starts_with(kSkuKey)) {
      said.erase(0, kSkuKey.size());
      sku = takeName(said);
      if (sku.empty()) return wrongLine(file, number, "sku= has no name after it; expected sku=PROFILE");
    }
    const std::string state = said.substr(0, said.find_first_of(" \t"));
    if (!said.empty() && state != "down" && state != "drained")
      return wrongLine(
          file, number,
          fmt::format(
              "found \"{}\" after the name; expected nothing, sku=PROFILE, or down or drained and a reason",
              printable(said, 80)));
    auto names = expandHostList(list);
    if (!names.ok()) return wrongLine(file, number, names.error().message);
    if (nodes.size() + names->size() > kMaxHosts)
      return wrongLine(file, number, fmt::format("the file names more than {} nodes", kMaxHosts));
    for (const std::string& name : *names) nodes.push_back({name, said, state == "drained", sku});
    return {};
  }));
  return nodes;
}

/// All nodes of Slurm; those that cannot take a job are down or drained.
Result<std::vector<fleet::ExpectedNode>> expectedOfSlurm(const std::string& partition) {
  auto known = slurm::readNodes(partition);
  if (!known.ok()) return std::move(known).error().context("asking Slurm for its nodes");
  std::vector<fleet::ExpectedNode> nodes;
  for (const auto& [name, info] : *known)
    nodes.push_back({name, info.available() ? "" : info.text(), info.drained()});
  return nodes;
}

Result<fleet::Topology> readTopology(const fs::path& file) {
  MUSTER_TRY(const std::string text, readFile(file));
  MUSTER_TRY(const std::vector<NodeGroup> groups, parseTopology(text, file.string()));
  if (groups.empty())
    return Error{ErrorCode::kUsage,
                 "holds no node group; expected lines \"SwitchName=leaf1 Nodes=node[1-16]\"", file.string()};
  fleet::Topology topology;
  for (const NodeGroup& group : groups) {
    auto& members = topology[group.name];
    members.insert(members.end(), group.nodes.begin(), group.nodes.end());
  }
  return topology;
}

/// Runs on Slurm are resumed together: the scheduler knows what to start where. Empty for other ones.
std::string slurmResumeOf(const fs::path& run) {
  std::error_code error;
  for (const fs::path& folder : {run, run.lexically_normal().parent_path()})
    if (fs::exists(folder / "slurm.json", error) && !isPlanted(folder / "slurm.json"))
      return "muster slurm resume " + slurm::shellQuote(folder.string());
  return "";
}

/// "--node-sku gpu[1-8]=h200-sxm" for nodes that are expected.
Status giveSku(const std::string& text, std::vector<fleet::ExpectedNode>& nodes) {
  const std::string where = "--node-sku " + printable(text, 80);
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size())
    return Error{ErrorCode::kUsage, "expected NODES=SKU, such as gpu[1-8]=h200-sxm", where};
  MUSTER_TRY(const auto names, expandHostList(text.substr(0, equals)).context(where));
  for (const std::string& name : names) {
    const auto at =
        std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.name == name; });
    if (at == nodes.end())
      return Error{ErrorCode::kUsage, fmt::format("node {} is not expected", printable(name, 80)), where};
    at->sku = text.substr(equals + 1);
  }
  return {};
}

Result<fleet::FleetOptions> readOptions(const FleetCommandOptions& options) {
  if (options.expect.empty() == !options.expectSlurm)
    return Error{ErrorCode::kUsage,
                 "list the required nodes with --expect FILE or --expect-slurm; otherwise missing nodes "
                 "cannot be detected",
                 ""};
  fleet::FleetOptions wanted;
  wanted.rejectOutliers = options.rejectOutliers;
  wanted.sameMachine = options.sameMachine;
  wanted.allowRejudged = options.allowRejudged;
  wanted.manyRuns = options.manyRuns;
  for (const fs::path& path : options.profiles) {
    MUSTER_TRY(const Profile profile, loadProfile(path, nullptr));
    wanted.pinnedProfiles[profile.name] = profile.sha256;
  }
  wanted.fleetId = options.fleetId;
  wanted.resumeWith = slurmResumeOf(options.run);
  if (options.expectSlurm) {
    MUSTER_TRY(wanted.expected, expectedOfSlurm(options.partition));
    wanted.expectedFrom = options.partition.empty() ? "Slurm" : "Slurm, partition " + options.partition;
  } else {
    MUSTER_TRY(wanted.expected, readExpected(options.expect));
    wanted.expectedFrom = options.expect.filename().string();
  }
  for (const std::string& text : options.nodeSkus) MUSTER_CHECK_OK(giveSku(text, wanted.expected));
  if (!options.plan.empty()) {
    MUSTER_TRY(const std::string plan, frozenPlanText(options.plan));
    wanted.planSha256 = sha256Hex(plan);
  }
  if (!options.topology.empty()) {
    MUSTER_TRY(wanted.topology, readTopology(options.topology));
    wanted.topologyFrom = options.topology.filename().string();
  }
  return wanted;
}

/// The profiles that records hold, read once each. They share one budget, so those of most nodes come first.
void readProfiles(const fleet::FleetRecords& records, fleet::FleetOptions& wanted) {
  std::map<std::string, std::set<std::string>> nodesOf;
  for (const fleet::NodeSummary& node : records.nodes)
    if (!node.profileSha256.empty()) nodesOf[node.profileSha256].insert(node.node);
  std::vector<std::pair<std::string, size_t>> digests;
  for (const auto& [sha256, nodes] : nodesOf) digests.emplace_back(sha256, nodes.size());
  std::stable_sort(digests.begin(), digests.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  ExpectationBudget budget;
  for (const auto& [sha256, nodes] : digests) {
    ExpectationBudget left = budget;
    const std::string* text = records.names->profiles.find(sha256);
    Result<Profile> profile =
        text == nullptr ? Error{ErrorCode::kProtocol, "no record holds a text with it", ""}
                        : parseProfile(*text, "profile-" + sha256.substr(0, 12) + ".toml", nullptr, &left);
    if (profile.ok()) budget = left;
    if (profile.ok())
      wanted.profiles[sha256] = {std::move(profile->expectations), std::move(profile->peaks)};
    else
      wanted.notes.push_back(
          fmt::format("the profile with digest {} in the records cannot be read, so fleet medians are not "
                      "compared with it: {}",
                      sha256.substr(0, 12), printable(profile.error().text(), 300)));
  }
}

/// Says that names are pseudonyms.
void noteRedacted(const fleet::FleetRecords& records, fleet::FleetOptions& wanted) {
  const auto redacted =
      std::count_if(records.nodes.begin(), records.nodes.end(),
                    [](const fleet::NodeSummary& node) { return !node.redactedFrom.empty(); });
  if (redacted > 0)
    wanted.notes.push_back(
        fmt::format("REDACTED: in {} of {} records names were replaced", redacted, records.nodes.size()));
}

/// The SKUs that plans in records name. Of a Lua plan, which is a program, none is known.
void readPlanSkus(const fleet::FleetRecords& records, fleet::FleetOptions& wanted) {
  const auto& plans = records.names->plans;
  for (uint32_t i = 0; i < plans.size(); ++i) {
    if (std::string sku = skuNamedIn(plans[i]); !sku.empty())
      wanted.planSkus[plans.textOf(i)] = std::move(sku);
  }
}

}  // namespace

Status checkTopology(const fs::path& file) {
  const auto topology = readTopology(file);
  return topology.ok() ? Status() : Status(topology.error());
}

namespace {

/// Nodes that did not run through at once; empty: there are none.
std::string resumedNote(const fleet::FleetRecords& records) {
  std::vector<std::string> nodes;
  for (const fleet::NodeSummary& node : records.nodes)
    if (node.resumed > 0)
      nodes.push_back(fmt::format("{} ({})", node.node, plural(static_cast<size_t>(node.resumed), "time")));
  return nodes.empty() ? ""
                       : fmt::format("the runs of {} were resumed: {}", plural(nodes.size(), "node"),
                                     devicesText(nodes));
}

/// What the command names besides the records.
Result<FleetInputs> readInputs(const FleetCommandOptions& options) {
  FleetInputs inputs;
  MUSTER_TRY(inputs.wanted, readOptions(options));
  inputs.at = systemClock().wallUnix();
  inputs.witnessed = !options.slurmRun.empty() || !options.recordKey.empty();
  if (options.waivers.empty()) return inputs;
  MUSTER_TRY(const Waivers waivers, readWaivers(options.waivers, inputs.at));
  inputs.wanted.waiversFrom = options.waivers.filename().string();
  inputs.wanted.waiversSha256 = waivers.sha256;
  inputs.waiversPath = waivers.path;
  inputs.waiversText = waivers.text;
  return inputs;
}

/// Sets aside the records of runs that ended after `at`, when the fleet was judged: waivers expire by that
/// time, and no run can have ended later. One of these clocks is wrong.
void setAsideLater(fleet::FleetRecords& records, double at) {
  std::erase_if(records.nodes, [&](const fleet::NodeSummary& node) {
    if (node.finished <= latestEnd(at)) return false;
    records.quarantined.push_back(
        {node.path, node.node,
         fmt::format(
             "its run ended at {} by its own clock, and the fleet was judged at {}: this machine's "
             "clock or the node's is wrong. Set it right, and run `muster fleet` again (if the node's "
             "clock was ahead, run the node again)",
             formatUtc(node.finished), formatUtc(at))});
    return true;
  });
}

}  // namespace

double latestEnd(double at) {
  return at + slurm::kMaxClockSkew;
}

Result<JudgedFleet> judgeRecords(FleetInputs inputs, const fs::path& run, const fleet::RecordRules& rules) {
  Waivers waivers;
  if (!inputs.waiversPath.empty()) {
    MUSTER_TRY(waivers, parseWaivers(inputs.waiversText, inputs.waiversPath, inputs.at));
  }
  MUSTER_TRY(auto records, fleet::readFleet(run, fleet::readerThreads(), {}, waivers.list, rules));
  return judgeRead(std::move(inputs), std::move(records), run);
}

Result<JudgedFleet> judgeRead(FleetInputs inputs, fleet::FleetRecords records, const fs::path& run) {
  JudgedFleet judged;
  fleet::FleetOptions wanted = inputs.wanted;
  wanted.at = inputs.at;
  judged.inputs = std::move(inputs);
  judged.records = std::move(records);
  fleet::setAsideCopies(judged.records);
  setAsideLater(judged.records, judged.inputs.at);
  setAsideIncomplete(judged.records, wanted.planSha256);
  setAsideUnsound(judged.records, run);
  fleet::setAsideRedacted(judged.records);
  noteRedacted(judged.records, wanted);
  readProfiles(judged.records, wanted);
  readPlanSkus(judged.records, wanted);
  if (std::string note = resumedNote(judged.records); !note.empty()) wanted.notes.push_back(std::move(note));
  MUSTER_TRY(judged.fleet, fleet::assess(judged.records, wanted));
  return judged;
}

namespace {

/// Gives check results that were deferred the outcome beside the other nodes. They stand in the record's
/// order.
Status settleDeferred(const std::vector<fleet::DeferredOutcome>& outcomes, Record& record) {
  auto next = outcomes.begin();
  for (StageRecord& stage : record.stages)
    for (Verdict& verdict : stage.verdicts) {
      if (verdict.outcome != Outcome::kDeferred) continue;
      if (next == outcomes.end())
        return Error{ErrorCode::kInternal, "more deferred results than were judged", ""};
      verdict.outcome = next->outcome;
      verdict.margin = next->margin;
      ++next;
    }
  return next == outcomes.end() ? Status()
                                : Error{ErrorCode::kInternal, "fewer deferred results than were judged", ""};
}

/// These records of a node, as they were read before, under the waivers of the fleet and beside its nodes.
Result<std::vector<Record>> recordsOf(const std::vector<size_t>& indices, const fs::path& run,
                                      const Waivers& waivers, const JudgedFleet& judged) {
  std::vector<Record> records;
  for (const size_t index : indices) {
    const fleet::NodeSummary& summary = judged.records.nodes[index];
    const auto text = readFile(run / summary.path, kMaxRecordBytes);
    if (!text.ok()) return Error{text.error().code, text.error().message, summary.path};
    if (sha256Hex(*text) != summary.sha256)
      return Error{ErrorCode::kUsage, "was changed while the fleet was judged; run the command again",
                   summary.path};
    MUSTER_TRY(Record record, uncheckedRecord(*text).context(summary.path));
    for (StageRecord& stage : record.stages)
      applyWaivers(waivers.list, waivedNode(record), stage.verdicts, record.accounting);
    MUSTER_CHECK_OK(settleDeferred(judged.fleet.deferredOutcomes[index], record).context(summary.path));
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace

Result<FleetClauses> applyRequirements(const Requirements& requirements, const fs::path& run,
                                       JudgedFleet& judged) {
  Waivers waivers;
  if (!judged.inputs.waiversPath.empty()) {
    MUSTER_TRY(waivers, parseWaivers(judged.inputs.waiversText, judged.inputs.waiversPath, judged.inputs.at));
  }
  FleetClauses clauses(requirements);
  for (const fleet::FleetNode& node : judged.fleet.nodes) {
    if (node.records.empty()) continue;  // it blocks acceptance anyway
    const auto records = recordsOf(node.records, run, waivers, judged);
    const auto repeated = recordsOf(node.repeated, run, waivers, judged);
    if (records.ok() && repeated.ok())
      clauses.add(node.name, *records, *repeated);
    else  // one node's file must not keep the others from their verdict
      clauses.addUnreadable(node.name, (records.ok() ? repeated : records).error().text());
  }
  clauses.finish();
  MUSTER_CHECK_OK(fleet::withhold(clauses.openNodes(), clauses.gaps(), judged.fleet));
  return clauses;
}

Result<JudgedFleet> judgeFleet(const FleetCommandOptions& options, const slurm::Witness* witness) {
  MUSTER_TRY(FleetInputs inputs, readInputs(options));
  fleet::FleetOptions& wanted = inputs.wanted;
  fleet::RecordRules rules;
  std::optional<slurm::RunStore> run;
  if (!options.slurmRun.empty()) {
    MUSTER_TRY(run, slurm::RunStore::open(options.slurmRun));
    MUSTER_TRY(rules, slurmRules(*run, *witness, options.unconfirmed));
    std::set<std::string> expected;
    for (const auto& node : wanted.expected) expected.insert(node.name);
    for (const std::string& node : run->submission().nodes)
      if (!expected.contains(node))
        return Error{ErrorCode::kUsage, fmt::format("node {} of this run is not expected", node),
                     options.expect.string()};
    if (std::string note = forgottenNote(*run, *witness); !note.empty())
      wanted.notes.push_back(std::move(note));
    const auto nodes = witness->clusterNodes();
    wanted.clusterNodes = {nodes.begin(), nodes.end()};
  }
  if (!options.recordKey.empty()) {
    MUSTER_TRY(rules.origin.runKey, readKey(options.recordKey).context("--record-key"));
  }
  return judgeRecords(std::move(inputs), options.run, rules);
}

namespace {

/// What Slurm says of a run's jobs; a controller that restarts is asked again.
Result<slurm::Witness> askPatiently(const FleetCommandOptions& options) {
  MUSTER_TRY(const slurm::RunStore run, slurm::RunStore::open(options.slurmRun));
  for (const double end = systemClock().now() + kSlurmPatience;;) {
    auto witness = askSlurm(run, options.unconfirmed);
    const bool passing = !witness.ok() && witness.error().code == ErrorCode::kTimeout;
    if (!passing || systemClock().now() > end) return witness;
    printText("trying again: {}\n", witness.error().text());
    std::fflush(stdout);
    usleep(kSlurmPause);
  }
}

/// The relative path from folder `from` to folder `to`; empty where there is none.
std::string pathFrom(const fs::path& from, const fs::path& to) {
  std::error_code error;
  const fs::path begin = fs::canonical(from, error);
  const fs::path end = error ? fs::path() : fs::canonical(to, error);
  return error ? "" : end.lexically_relative(begin).string();
}

/// Records of a run on Slurm or Kubernetes are judged as such, whether or not --slurm-run or --record-key
/// says so.
Result<FleetCommandOptions> asOfItsRun(FleetCommandOptions options) {
  if (!options.slurmRun.empty()) return options;
  options.slurmRun = slurmRunOf(options.run);
  if (options.slurmRun.empty() && options.recordKey.empty()) options.recordKey = kubeKeyOf(options.run);
  if (options.slurmRun.empty()) return options;
  const fs::path records = options.slurmRun / "records";
  std::error_code error;
  if (!fs::equivalent(options.run, options.slurmRun, error) && !fs::equivalent(options.run, records, error))
    return Error{ErrorCode::kUsage, fmt::format("this is a part of a Slurm run; give {}", records.string()),
                 options.run.string()};
  if (options.out.empty()) options.out = options.run;
  options.run = records;
  return options;
}

}  // namespace

Result<int> fleetCommand(const FleetCommandOptions& given) {
  MUSTER_TRY(const FleetCommandOptions options, asOfItsRun(given));
  MUSTER_TRY(const Tree tree, findTree());
  std::optional<slurm::Witness> witness;
  if (!options.slurmRun.empty()) {
    MUSTER_TRY(witness, askPatiently(options));
  }
  fleet::PageExtras extras;
  if (!options.acceptance.empty()) {
    MUSTER_TRY(extras.document, readAcceptanceDocument(options.acceptance));
  }
  if (!options.requirements.empty()) {
    MUSTER_TRY(extras.document.requirements, readRequirements(options.requirements));
  }
  MUSTER_TRY(JudgedFleet judged, judgeFleet(options, witness ? &*witness : nullptr));
  const auto& [records, fleet, inputs] = judged;
  const fs::path named = options.out.empty() ? options.run : options.out;
  MUSTER_TRY(const fs::path out, makeOutputFolder(named, "--out"));
  MUSTER_CHECK_OK(keepDocuments(extras.document, out));
  if (extras.document.requirements) {
    MUSTER_TRY(extras.clauses, applyRequirements(*extras.document.requirements, options.run, judged));
  }
  const std::string text = fleet::fleetText(fleet, records, extras.clauses);
  MUSTER_CHECK_OK(writeFileAtomically(out / "fleet.json", text).context("writing the fleet record"));
  extras.recordsAt = judged.inputs.recordsAt = pathFrom(out, options.run);
  MUSTER_CHECK_OK(
      writeFileAtomically(out / kFleetInputsFile, dumpJson(toJson(inputs), 1) + "\n", Durable::kNo));
  MUSTER_TRY(const std::string html,
             fleet::renderFleetHtml(fleet, records, sha256Hex(text), tree.templates, extras));
  MUSTER_CHECK_OK(writeFileAtomically(out / "fleet.html", html, Durable::kNo));
  printLines(fleet::renderFleetSummary(fleet, kSummaryColumns));
  printText("report {}\n", (named / "fleet.html").string());
  return fleet.exitCode;
}

}  // namespace muster
