// SPDX-License-Identifier: Apache-2.0
// `muster history delta`: after a replacement only the replaced nodes run again, and their records join those
// of the accepted fleet.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "reports/fleet/render/fleet_html.h"
#include "reports/fleet/render/fleet_terminal.h"
#include "reports/history/delta.h"
#include "runner/app/fleet/fleet_command.h"
#include "runner/app/history/history_command.h"
#include "runner/app/history/history_json.h"
#include "runner/app/history/unrecorded_nodes.h"
#include "runner/app/input/record_input.h"
#include "runner/app/input/run_records.h"
#include "runner/app/node/outputs.h"
#include "runner/app/node/waiver_input.h"
#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

using history::Delta;
using history::DeltaInput;
using history::DeltaNode;
using history::DeltaState;
using history::KeptFleet;
using history::RecordUse;

constexpr size_t kMostListed = 40;

struct FoundRecord {
  fs::path path;
  RecordUse use;
};

Status checkOptions(const HistoryOptions& options) {
  if (options.reruns.empty() && options.surveys.empty())
    return Error{
        ErrorCode::kUsage,
        "give the run directories after the repair (RUN...), or --survey DIR to list the nodes to retest",
        ""};
  if (!options.reruns.empty() && options.out.empty())
    return Error{ErrorCode::kUsage, "give --out, the directory for the merged fleet", ""};
  std::error_code error;
  if (!options.out.empty() && fs::exists(options.out, error) && !fs::is_empty(options.out, error))
    return Error{ErrorCode::kUsage, "this directory is not empty; choose another --out",
                 options.out.string()};
  return {};
}

Error noRecord(const fs::path& folder, const std::string& more = "") {
  return {ErrorCode::kUsage, "no record.json in this directory" + more, folder.string()};
}

/// Record files of a folder of runs, or the file itself.
Status addRecords(const fs::path& given, RecordUse use, std::vector<FoundRecord>& found) {
  std::error_code error;
  if (!fs::is_directory(given, error)) {
    found.push_back({given, use});
    return {};
  }
  MUSTER_TRY(const auto records, fleet::findRecords(history::recordsFolderOf(given)));
  if (records.empty() && use != RecordUse::kAccepted) {
    MUSTER_TRY(const auto launched, launchedRunsAt(given));
    if (launched.empty() || use == RecordUse::kSurvey) return noRecord(given);
  }
  for (const fs::path& path : records) found.push_back({path, use});
  return {};
}

/// A new run may lie below the accepted fleet's folder: a file is read once, for what it was named first.
void dropRepeated(std::vector<FoundRecord>& found) {
  std::set<fs::path> seen;
  std::erase_if(found, [&](const FoundRecord& record) {
    std::error_code error;
    return !seen.insert(fs::weakly_canonical(record.path, error)).second;
  });
}

/// The fleet named by --since; else the newest accepted one in the history that has the first new record's
/// node.
Result<KeptFleet> acceptedFleet(const HistoryOptions& options, const std::vector<FoundRecord>& news) {
  if (!options.since.empty()) return history::readFleetIn(options.since);
  if (news.empty()) return noRecord(options.reruns.front(), "; give the accepted fleet with --since");
  fleet::FleetNames names;
  const auto node = fleet::RecordReader(names).read(news.front().path);
  if (!node.ok())
    return Error{ErrorCode::kUsage,
                 fmt::format("{}; give the accepted fleet with --since, or move this record away",
                             node.error().text()),
                 news.front().path.string()};
  MUSTER_TRY(history::Store store, openHistory(options, history::Access::kRead));
  MUSTER_TRY(const KeptFleet kept, store.lastAcceptedFleet(node->node, node->simulated));
  MUSTER_TRY(KeptFleet fleet, history::readFleetIn(kept.folder));
  if (fleet.sha256 == kept.sha256) return fleet;
  return Error{ErrorCode::kUsage,
               fmt::format("this fleet.json differs from the accepted one in the history (sha256 {}, added "
                           "{}); give the right directory with --since",
                           fleet.sha256.substr(0, 12), kept.sha256.substr(0, 12)),
               kept.folder.string()};
}

Status checkAccepted(const KeptFleet& fleet, const HistoryOptions& options) {
  if (!fleet.waiversFrom.empty() && options.waivers.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("this fleet was evaluated with the waivers of {}; give that file or the current "
                             "one with --waivers",
                             printable(fleet.waiversFrom, 80)),
                 fleet.folder.string()};
  if (fleet.clauses)
    return Error{ErrorCode::kUsage,
                 "this fleet was judged by the requirements of a contract, which concern all of its records: "
                 "put the new ones beside the others and merge all again with `muster fleet --requirements`",
                 fleet.folder.string()};
  if (fleet.acceptance == Acceptance::kAccepted) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("this fleet is {}; only an accepted fleet can be re-accepted. Merge all records "
                           "again with `muster fleet`",
                           nameOf(fleet.acceptance)),
               fleet.folder.string()};
}

/// Reads all of them into one table. What cannot be read of the accepted fleet is found missing by its
/// digest, which also says that a record is the one that was accepted.
Result<DeltaInput> readAll(KeptFleet accepted, const std::vector<FoundRecord>& found, const Waivers& waivers,
                           bool unconfirmed) {
  DeltaInput input;
  input.accepted = std::move(accepted);
  input.latest = latestEnd(systemClock().wallUnix());
  std::vector<fs::path> news;
  for (const FoundRecord& record : found)
    if (record.use != RecordUse::kAccepted) news.push_back(record.path);
  MUSTER_TRY(const auto slurm, RecordsOfAnyRun::open(news, unconfirmed));
  const RecordsOfAnyRun none;
  const auto nameOf = [&](size_t i) { return validUtf8(found[i].path.string()); };
  const auto read = [&](fleet::RecordReader& reader, size_t i) {
    return (found[i].use == RecordUse::kAccepted ? none : slurm).read(reader, found[i].path);
  };
  input.records = fleet::readEach({found.size(), read, nameOf}, fleet::readerThreads(), {}, waivers.list);
  setAsideIncomplete(input.records);
  setAsideUnsound(input.records, "");
  std::map<std::string, RecordUse> uses;
  for (size_t i = 0; i < found.size(); ++i) uses.emplace(nameOf(i), found[i].use);
  for (const auto& node : input.records.nodes) input.uses.push_back(uses.at(node.path));
  auto& bad = input.records.quarantined;
  const auto first = std::stable_partition(bad.begin(), bad.end(), [&](const auto& one) {
    const auto use = uses.find(one.path);  // a long path was shortened
    return use == uses.end() || use->second != RecordUse::kAccepted;
  });
  input.unreadable.assign(first, bad.end());
  bad.erase(first, bad.end());
  return input;
}

/// Fails where the new runs or surveys hold nothing but records that the fleet was accepted by: nothing could
/// have been replaced since.
Status checkNews(const DeltaInput& input) {
  std::set<std::string> accepted;
  for (const auto& member : input.accepted.nodes)
    for (const auto& record : member.records) accepted.insert(record.sha256);
  std::string old;
  for (size_t i = 0; i < input.records.nodes.size(); ++i) {
    if (input.uses[i] == RecordUse::kAccepted) continue;
    if (accepted.count(input.records.nodes[i].sha256) == 0) return {};
    if (old.empty()) old = input.records.nodes[i].path;
  }
  if (old.empty()) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("all of these records are already part of the accepted fleet in {}; expected records of "
                  "runs after the repair: run an inventory plan on the nodes and give its directory",
                  input.accepted.folder.string()),
      old};
}

void printList(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  printText("{}\n", title);
  for (size_t i = 0; i < std::min(lines.size(), kMostListed); ++i) printText("  {}\n", lines[i]);
  if (lines.size() > kMostListed)
    printText("  and {} more; --json lists them all\n", lines.size() - kMostListed);
}

std::vector<std::string> linesOf(const Delta& delta, DeltaState state) {
  std::vector<std::string> lines;
  for (const DeltaNode& node : delta.nodes) {
    if (node.state != state) continue;
    std::vector<std::string> changes = node.facts;
    for (const auto& part : node.parts) changes.push_back(part.text());
    if (state == DeltaState::kRerun && changes.empty()) changes.emplace_back("nothing was replaced");
    lines.push_back(node.name + ": " + (state == DeltaState::kNeeds ? node.why : join(changes, ", ")));
  }
  return lines;
}

void printPlan(const DeltaInput& input, const Delta& delta) {
  const auto count = [&](DeltaState state) {
    return std::count_if(delta.nodes.begin(), delta.nodes.end(),
                         [&](const DeltaNode& node) { return node.state == state; });
  };
  printText("{}accepted fleet {}: {} nodes, plan {}; {} unchanged, {} taken from new runs, {} to retest\n",
            input.accepted.simulated ? "SIMULATED " : "", printable(input.accepted.folder.string(), 200),
            delta.nodes.size(), printable(input.accepted.plan, 80), count(DeltaState::kKept),
            count(DeltaState::kRerun), count(DeltaState::kNeeds));
  printList("taken from new runs", linesOf(delta, DeltaState::kRerun));
  printList("to retest", linesOf(delta, DeltaState::kNeeds));
  printList("not used", delta.notTaken);
  printList("notes", delta.notes);
}

/// Where a record lies in the merged folder: "n3/rerun/record.json".
std::string placeOf(const DeltaInput& input, const DeltaNode& node, size_t i) {
  size_t before = 0;
  for (const size_t other : node.records) {
    if (other == i) break;
    before += input.uses[other] == input.uses[i] ? 1 : 0;
  }
  return fmt::format("{}/{}{}/record.json", node.name,
                     input.uses[i] == RecordUse::kAccepted ? "accepted" : "rerun",
                     before == 0 ? "" : fmt::format("-{}", before + 1));
}

/// The records that count, copied under `out`/records with their digests checked once more.
Result<fleet::FleetRecords> gather(DeltaInput& input, const Delta& delta, const fs::path& out) {
  fleet::FleetRecords merged;
  for (const DeltaNode& node : delta.nodes)
    for (const size_t i : node.records) {
      fleet::NodeSummary record = input.records.nodes[i];
      MUSTER_TRY(const std::string text, readFile(record.path));
      if (sha256Hex(text) != record.sha256)
        return Error{ErrorCode::kUsage, "this record was modified while being read", record.path};
      record.path = placeOf(input, node, i);
      const fs::path target = out / "records" / record.path;
      MUSTER_CHECK_OK(makeOutputFolder(target.parent_path(), "--out"));
      MUSTER_CHECK_OK(writeFileAtomically(target, text, Durable::kNo).context("copying a node's record"));
      merged.nodes.push_back(std::move(record));
    }
  merged.names = std::move(input.records.names);
  return merged;
}

FleetInputs inputsOf(const KeptFleet& accepted, const HistoryOptions& options, const Waivers& waivers) {
  FleetInputs inputs;
  inputs.at = systemClock().wallUnix();
  fleet::FleetOptions& wanted = inputs.wanted;
  for (const auto& member : accepted.nodes) wanted.expected.push_back({member.name, "", false, member.sku});
  wanted.expectedFrom = accepted.expectedFrom;
  wanted.planSha256 = accepted.planSha256;
  wanted.manyRuns = true;
  wanted.sameMachine = accepted.sameMachine;
  wanted.allowRejudged = accepted.allowRejudged;
  wanted.rejectOutliers = accepted.rejectOutliers || options.rejectOutliers;
  wanted.waiversFrom = options.waivers.filename().string();
  wanted.waiversSha256 = waivers.sha256;
  return inputs;
}

/// What the merged record says of its making.
fleet::FleetDelta provenanceOf(const DeltaInput& input, const Delta& delta) {
  fleet::FleetDelta out;
  out.since = input.accepted.folder.string();
  out.sinceSha256 = input.accepted.sha256;
  out.sinceFinished = input.accepted.finished;
  for (const DeltaNode& node : delta.nodes) {
    if (node.state != DeltaState::kRerun) {
      ++out.kept;
      continue;
    }
    fleet::FleetDelta::Node taken;
    taken.node = node.name;
    for (const size_t i : node.records) {
      const auto& record = input.records.nodes[i];
      if (input.uses[i] == RecordUse::kRerun)
        taken.runs.push_back({record.path, record.runId, record.started});
    }
    taken.changes = node.facts;
    for (const auto& part : node.parts) taken.changes.push_back(part.text());
    out.nodes.push_back(std::move(taken));
  }
  return out;
}

Result<int> merge(DeltaInput& input, const Delta& delta, const HistoryOptions& options,
                  const Waivers& waivers) {
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(fleet::FleetRecords merged, gather(input, delta, options.out));
  MUSTER_TRY(JudgedFleet judged, judgeRead(inputsOf(input.accepted, options, waivers), std::move(merged),
                                           options.out / "records"));
  fleet::Fleet& fleet = judged.fleet;
  fleet.delta = provenanceOf(input, delta);
  const std::string text = fleet::fleetText(fleet, judged.records);
  MUSTER_CHECK_OK(writeFileAtomically(options.out / "fleet.json", text).context("writing the fleet record"));
  MUSTER_TRY(const std::string html,
             fleet::renderFleetHtml(fleet, judged.records, sha256Hex(text), tree.templates));
  MUSTER_CHECK_OK(writeFileAtomically(options.out / "fleet.html", html, Durable::kNo));
  if (options.json) {
    Json json = toJson(delta);
    json["acceptance"] = nameOf(fleet.acceptance);
    json["fleet"] = (options.out / "fleet.json").string();
    printJson(json);
    return fleet.exitCode;
  }
  printLines("\n" + fleet::renderFleetSummary(fleet, kSummaryColumns));
  printText("report {}\n", (options.out / "fleet.html").string());
  if (fleet.exitCode == kExitAccepted)
    printText("next: `muster history add {}` stores it as the last acceptance\n",
              shellQuote(options.out.string()));
  return fleet.exitCode;
}

void sayWhatToRun(const Delta& delta) {
  const std::string list = join(delta.needing(), ",");
  printText("\nretest: {}\nnext: muster slurm submit PLAN --nodes {}\n", list, list);
}

}  // namespace

Result<int> historyDelta(const HistoryOptions& options) {
  MUSTER_CHECK_OK(checkOptions(options));
  std::vector<FoundRecord> found;
  for (const fs::path& run : options.reruns) MUSTER_CHECK_OK(addRecords(run, RecordUse::kRerun, found));
  for (const fs::path& survey : options.surveys)
    MUSTER_CHECK_OK(addRecords(survey, RecordUse::kSurvey, found));
  MUSTER_TRY(KeptFleet accepted, acceptedFleet(options, found));
  MUSTER_CHECK_OK(checkAccepted(accepted, options));
  MUSTER_CHECK_OK(addRecords(accepted.folder, RecordUse::kAccepted, found));
  dropRepeated(found);
  Waivers waivers;
  if (!options.waivers.empty()) {
    MUSTER_TRY(waivers, readWaivers(options.waivers, systemClock().wallUnix()));
  }
  MUSTER_TRY(DeltaInput input, readAll(std::move(accepted), found, waivers, options.unconfirmed));
  MUSTER_CHECK_OK(checkNews(input));
  MUSTER_CHECK_OK(addUnrecorded(options.reruns, input));
  const Delta delta = history::planDelta(input);
  if (!delta.mismatches.empty())
    return Error{ErrorCode::kUsage, fmt::format("nothing was merged:\n  {}", join(delta.mismatches, "\n  ")),
                 ""};
  const bool complete = delta.needing().empty();
  const auto& uses = input.uses;
  if (complete && !options.reruns.empty() &&
      std::find(uses.begin(), uses.end(), RecordUse::kRerun) == uses.end())
    return noRecord(options.reruns.front());
  if (!options.json) printPlan(input, delta);
  if (complete && !options.reruns.empty()) return merge(input, delta, options, waivers);
  if (options.json)
    printJson(toJson(delta));
  else if (!complete)
    sayWhatToRun(delta);
  return complete ? kExitAccepted : kExitIncomplete;
}

}  // namespace muster
