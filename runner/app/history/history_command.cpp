// SPDX-License-Identifier: Apache-2.0
// Runs the subcommands of `muster history`.
#include "runner/app/history/history_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "reports/fleet/read/record_stream.h"
#include "reports/history/series_reader.h"
#include "runner/app/history/comparison_view.h"
#include "runner/app/history/history_json.h"
#include "runner/app/input/measured_only.h"
#include "runner/app/input/record_input.h"
#include "runner/app/input/run_records.h"
#include "runner/app/process/print_error.h"
#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/exit_code.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

struct AddedRecord {
  std::string node;
  Acceptance acceptance = Acceptance::kIncomplete;
};

/// Whether an accepted fleet has the records it names; `added` are those of its folder, by digest.
Status checkRecords(const history::KeptFleet& fleet, const std::map<std::string, AddedRecord>& added) {
  if (fleet.acceptance != Acceptance::kAccepted) return {};
  const auto refused = [&](const history::FleetEntry& entry, const std::string& why) {
    return Error{ErrorCode::kUsage, fmt::format("its record {} {}", printable(entry.path), why),
                 fleet.folder.string()};
  };
  for (const history::FleetMember& member : fleet.nodes)
    for (const history::FleetEntry& entry : member.records) {
      const auto found = added.find(entry.sha256);
      if (found == added.end()) return refused(entry, "is missing, was changed, or was not added");
      if (found->second.node != member.name)
        return refused(entry, fmt::format("is of node {}, not of {}", found->second.node, member.name));
      if (found->second.acceptance == Acceptance::kRejected && fleet.waiversFrom.empty())
        return refused(entry, "is rejected, but the fleet is accepted");
    }
  return {};
}

/// Keeps the fleet of a folder, if there is one in it. False: it is there, and was not added.
Result<bool> addFleet(history::Store& store, const fs::path& folder,
                      const std::map<std::string, AddedRecord>& added, size_t& kept) {
  if (history::fleetFileIn(folder).empty()) return true;
  const auto fleet = history::readFleetIn(folder);
  const Status sound = fleet.ok() ? checkRecords(*fleet, added) : Status(fleet.error());
  if (!sound.ok()) {
    printError(fmt::format("{}: not added", sound.error().text()));
    return false;
  }
  MUSTER_TRY(const bool isNew, store.addFleet(*fleet, systemClock().wallUnix()));
  kept += isNew ? 1 : 0;
  return true;
}

/// What the fleet's reader, which read it as `node`, cannot see of a record.
Status checkKept(const RecordFile& file, const fleet::NodeSummary& node, PredicateTime& call) {
  MUSTER_TRY(const Record record, soundRecordAt(file, call));
  return checkUnchanged(record, node.sha256, file.path);
}

/// Why a run's date may be wrong: it is ahead of this machine's, or a day older than a run of the node that
/// is stored already, as when a node's clock was reset. Empty: it may be right.
Result<std::string> oddDate(history::Store& store, const fleet::NodeSummary& run) {
  constexpr double kAhead = 300, kBehind = 86400;  // seconds
  if (run.started > systemClock().wallUnix() + kAhead)
    return fmt::format("one of {} is dated {}, in the future", printable(run.node, 64),
                       formatUtc(run.started));
  MUSTER_TRY(const auto newest, store.runs({run.node, 1}));
  if (newest.empty() || newest.front().simulated != run.simulated ||
      newest.front().started - run.started < kBehind)
    return std::string();
  return fmt::format("one of {} is dated {}, before run #{} of {}, which was added earlier",
                     printable(run.node, 64), formatUtc(run.started), newest.front().number,
                     formatUtc(newest.front().started));
}

Result<int> add(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openHistory(options, history::Access::kWrite));
  size_t kept = 0, known = 0, bad = 0, fleets = 0, oddDates = 0;
  std::string firstOdd;
  PredicateTime call{PredicateTime::kOfCall};
  std::vector<std::pair<fs::path, std::vector<RecordFile>>> all;  // by what was named
  std::vector<fs::path> paths;
  for (const fs::path& given : options.records) {
    MUSTER_TRY(auto records, recordFilesAt(given));
    for (const RecordFile& file : records) paths.push_back(file.path);
    all.emplace_back(given, std::move(records));
  }
  MUSTER_TRY(const auto slurm, RecordsOfAnyRun::open(paths, options.unconfirmed));
  for (const auto& [given, records] : all) {
    std::map<std::string, AddedRecord> added;
    for (const RecordFile& file : records) {
      const fs::path& path = file.path;
      // Names of its own: a record is read, kept and forgotten, so memory does not grow with their number.
      fleet::FleetNames names;
      fleet::RecordReader reader(names);
      reader.keepSpreads();
      auto node = slurm.read(reader, path, file.directory);
      if (node.ok() && !node->partial.empty())
        node = Error{ErrorCode::kUsage, "it is no run of the whole plan: " + node->partial, ""};
      const Status whole = node.ok() ? checkKept(file, *node, call) : Status(node.error());
      if (!whole.ok()) {
        ++bad;
        printError(fmt::format("{}: not added: {}", printable(path.string()), whole.error().message));
        continue;
      }
      if (!node->redactedFrom.empty()) {
        ++bad;
        printError(
            fmt::format("{}: not added: it is redacted, so its names are of no node; add the original record",
                        printable(path.string())));
        continue;
      }
      added[node->sha256] = {node->node, node->acceptance};
      if (node->rejudged) {
        ++bad;
        printError(
            fmt::format("{}: not added: it was re-evaluated by `muster judge`; add the original record of "
                        "the run (sha256 {})",
                        printable(path.string()), node->rejudged->from.front().substr(0, 12)));
        continue;
      }
      node->path = fs::absolute(path).string();
      MUSTER_TRY(const std::string odd, oddDate(store, *node));
      MUSTER_TRY(const bool isNew, store.add(*node, names, systemClock().wallUnix()));
      ++(isNew ? kept : known);
      if (isNew && !odd.empty() && ++oddDates == 1) firstOdd = odd;
    }
    MUSTER_TRY(const bool readable, addFleet(store, given, added, fleets));
    bad += readable ? 0 : 1;
  }
  if (oddDates > 0)
    printError(
        fmt::format("warning: {} of the added runs {} an odd date; {}. If a node's clock was wrong, "
                    "`trend` and `compare` order its runs wrongly",
                    oddDates, oddDates == 1 ? "has" : "have", firstOdd));
  if (options.json)
    printJson({{"kept", kept}, {"known", known}, {"unreadable", bad}, {"fleets", fleets}});
  else
    printText("{} added, {} already known, {} could not be read{}\n", kept, known, bad,
              fleets == 0 ? "" : fmt::format("; {} fleet{} added", fleets, fleets == 1 ? "" : "s"));
  return bad > 0 ? kExitIncomplete : kExitAccepted;
}

Result<int> list(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openHistory(options, history::Access::kRead));
  MUSTER_TRY(const auto runs, store.runs({options.node, options.newest}));
  if (options.json) {
    Json all = Json::array();
    for (const history::Run& run : runs) all.push_back(toJson(run));
    printJson(all);
    return kExitAccepted;
  }
  for (const history::Run& run : runs) printText("{}\n", runLine(run));
  if (runs.empty())
    printText("no runs{} in the history\n", options.node.empty() ? "" : " of " + printable(options.node));
  return kExitAccepted;
}

Result<int> listFleets(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openHistory(options, history::Access::kRead));
  MUSTER_TRY(const auto fleets, store.fleets());
  if (options.json) {
    Json all = Json::array();
    for (const history::KeptFleet& fleet : fleets) all.push_back(toJson(fleet));
    printJson(all);
    return kExitAccepted;
  }
  for (const history::KeptFleet& fleet : fleets)
    printText("#{:<5} {}  {:<12} {} nodes, {}  {}{}\n", fleet.number, formatUtc(fleet.finished),
              nameOf(fleet.acceptance), fleet.nodes.size(), printable(fleet.plan, 64),
              printable(fleet.folder.string(), 200), fleet.simulated ? "  SIMULATED" : "");
  if (fleets.empty()) printText("no fleets in the history; add one with `muster history add DIR`\n");
  return kExitAccepted;
}

Result<int> show(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openHistory(options, history::Access::kRead));
  MUSTER_TRY(const history::Run run, store.find(options.runs.front()));
  MUSTER_TRY(const auto deviations, store.deviations(run));
  MUSTER_TRY(const auto points, store.pointsOf(run));
  if (options.json) {
    Json json = toJson(run);
    json["deviations"] = Json::array();
    for (const auto& d : deviations)
      json["deviations"].push_back({{"outcome", d.outcome},
                                    {"stage", d.stage},
                                    {"metric", d.metric},
                                    {"device", d.device},
                                    {"detail", d.detail}});
    json["figures"] = Json::array();
    for (const auto& p : points)
      json["figures"].push_back({{"stage", p.figure.stage},
                                 {"metric", p.figure.metric},
                                 {"labels", p.figure.labels},
                                 {"device", p.device.name},
                                 {"unit", p.figure.unit},
                                 {"n", p.n},
                                 {"median", numberToJson(p.median)},
                                 {"cv", numberToJson(p.cv)}});
    printJson(json);
    return kExitAccepted;
  }
  printText("{}\n  record {}\n  sha256 {}\n  id     {}\n  {} values\n", runLine(run), printable(run.path),
            run.sha256, printable(run.runId), points.size());
  for (const auto& d : deviations)
    printText("  {:<8} {} {} {}\n", d.outcome, printable(d.device), printable(d.metric), printable(d.detail));
  return kExitAccepted;
}

Result<int> trend(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openHistory(options, history::Access::kRead));
  if (!options.node.empty()) {  // of a mistyped name nothing got worse, which must not look like good news
    MUSTER_TRY(const auto runs, store.runs({options.node, 1}));
    if (runs.empty())
      return Error{ErrorCode::kUsage,
                   fmt::format("no run of {} in the history; `muster history list` shows the known nodes",
                               printable(options.node)),
                   ""};
  }
  MUSTER_TRY(auto reader, history::SeriesReader::open(store, {options.node, options.newest}));
  history::TrendFinder finder;
  MUSTER_CHECK_OK(reader.each([&](const std::vector<history::Series>& figure) { finder.add(figure); }));
  const history::Trends trends = finder.finish();
  // A simulation says nothing of real parts: it decides only where there is nothing else.
  const bool worse = (trends.measured > 0 ? trends.worseMeasured : trends.worseSimulated) > 0;
  if (options.json) {
    printJson(toJson(trends));
    return worse ? kExitRejected : kExitAccepted;
  }
  size_t shown = 0;
  for (const history::Change& change : trends.changes) {
    if (++shown > kMostShown) break;
    printText("{}{}{}\n  seen  {}\n  sure  {}\n  next  {}\n", change.worse ? "WORSE  " : "changed  ",
              printable(change.series.text()), change.series.simulated ? "  SIMULATED" : "", change.seen(),
              change.sure(), change.next());
  }
  const size_t changed = trends.changes.size() + trends.left;
  if (changed > kMostShown)
    printText("and {} more; --json lists {}\n", changed - kMostShown,
              trends.left == 0 ? "them all" : fmt::format("the first {}", trends.changes.size()));
  printText(
      "{} series, {} changed; {} have too few runs (required: 4 runs of a part and 6 successive pairs of its "
      "metric on the node), {} are mostly zero and not examined; numbers of errors are not followed\n",
      trends.series, changed, trends.tooFew, trends.zero);
  return worse ? kExitRejected : kExitAccepted;
}

/// The newest run of the node that was accepted before `run` and measured the same; any, where it measured
/// nothing.
Result<history::Run> lastAccepted(history::Store& store, const history::Run& run) {
  MUSTER_TRY(const auto earlier, store.acceptedBefore(run.node, run.started, run.simulated));
  MUSTER_TRY(const int64_t own, store.layoutOf(run));
  MUSTER_TRY(const auto figures, store.figuresIn(own));
  std::map<int64_t, bool> alike;  // by layout, which most runs share
  for (const history::Run& accepted : earlier) {
    MUSTER_TRY(const int64_t layout, store.layoutOf(accepted));
    if (!alike.contains(layout)) {
      MUSTER_TRY(const auto others, store.figuresIn(layout));
      alike[layout] = history::measuredAlike(others, figures);
    }
    if (alike[layout]) return accepted;
  }
  if (figures.empty() && !earlier.empty()) return earlier.front();
  return Error{ErrorCode::kNotFound,
               fmt::format("history has no accepted run of {} before {}{}", printable(run.node, 80),
                           formatUtc(run.started), earlier.empty() ? "" : " that measured the same"),
               ""};
}

/// The two runs: both named, or the one named and its node's last acceptance before it.
Result<std::pair<history::Run, history::Run>> comparedRuns(history::Store& store,
                                                           const std::vector<std::string>& names) {
  MUSTER_TRY(history::Run first, store.find(names.front()));
  if (names.size() == 1) {
    MUSTER_TRY(history::Run accepted, lastAccepted(store, first));
    return std::pair{std::move(accepted), std::move(first)};
  }
  MUSTER_TRY(history::Run second, store.find(names[1]));
  return std::pair{std::move(first), std::move(second)};
}

Result<int> compare(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openHistory(options, history::Access::kRead));
  MUSTER_TRY(const auto runs, comparedRuns(store, options.runs));
  if (runs.first.simulated != runs.second.simulated)
    return requireMeasured(true, "be compared with a measured run",
                           (runs.first.simulated ? runs.first : runs.second).path)
        .error();
  if (runs.first.node != runs.second.node)
    printError(fmt::format("muster: comparing two nodes, {} and {}, by device position, not by serial number",
                           printable(runs.first.node), printable(runs.second.node)));
  MUSTER_TRY(const history::Comparison comparison, history::compareRuns(store, runs.first, runs.second));
  if (options.json)
    printJson(toJson(comparison));
  else
    printComparison(comparison);
  const bool worse = std::any_of(comparison.figures.begin(), comparison.figures.end(),
                                 [](const auto& figure) { return figure.worse; });
  // What failed may be a count or a part, which no metric shows.
  const bool lost =
      runs.first.acceptance == Acceptance::kAccepted && runs.second.acceptance != Acceptance::kAccepted;
  return worse || lost ? kExitRejected : kExitAccepted;
}

}  // namespace

Result<history::Store> openHistory(const HistoryOptions& options, history::Access access) {
  fs::path path = options.database;
  if (path.empty()) {
    MUSTER_TRY(path, history::defaultHistory());
  }
  return history::Store::open(path, access);
}

Result<int> historyCommand(const HistoryCommands& commands) {
  if (commands.add->parsed()) return add(commands.options);
  if (commands.list->parsed()) return list(commands.options);
  if (commands.show->parsed()) return show(commands.options);
  if (commands.trend->parsed()) return trend(commands.options);
  if (commands.fleets->parsed()) return listFleets(commands.options);
  if (commands.delta->parsed()) return historyDelta(commands.options);
  if (commands.prune->parsed()) return historyPrune(commands.options);
  return compare(commands.options);
}

}  // namespace muster
