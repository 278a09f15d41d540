// SPDX-License-Identifier: Apache-2.0
// See history_command.h.
#include "runner/app/history_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "reports/fleet/record_stream.h"
#include "runner/app/exit_code.h"
#include "runner/app/history_json.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr const char* kExamples = R"(
The history is one SQLite file: --db FILE, else $MUSTER_HISTORY, else ~/.local/state/muster/history.sqlite.

Examples:
  muster history add runs/n17 runs/n18          keep these runs (again does no harm)
  muster history add /shared/fleet-2026-11      keep every node's run of a fleet
  muster history list --node n17                what is kept, with numbers
  muster history trend --node n17               steps and slopes that noise does not explain
  muster history compare 12                     run 12 beside its node's last acceptance
  muster history compare 12 15                  run 12 beside run 15: parts, driver, figures

trend and compare end with 1 if something got worse, add with 3 if a record could not be read.)";

constexpr size_t kMostShown = 40;

Result<history::Store> openStore(const HistoryOptions& options, history::Access access) {
  fs::path path = options.database;
  if (path.empty()) {
    MUSTER_TRY(path, history::defaultHistory());
  }
  return history::Store::open(path, access);
}

std::string runLine(const history::Run& run) {
  return fmt::format("#{:<5} {}  {:<20} {:<12} {}{}{}", run.number, formatUtc(run.started),
                     printable(run.node, 64), run.acceptance, printable(run.plan, 64),
                     run.profile.empty() ? "" : ", " + printable(run.profile, 64),
                     run.simulated ? "  SIMULATED" : "");
}

/// Record files of a run folder, a folder of runs, or the file itself.
Result<std::vector<fs::path>> recordsAt(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    MUSTER_TRY(auto records, fleet::findRecords(path));
    if (records.empty())
      return Error{ErrorCode::kUsage, "there is no record.json in this folder", path.string()};
    return records;
  }
  return std::vector<fs::path>{path};
}

Result<int> add(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openStore(options, history::Access::kWrite));
  size_t kept = 0, known = 0, bad = 0;
  for (const fs::path& given : options.records) {
    MUSTER_TRY(const auto records, recordsAt(given));
    for (const fs::path& path : records) {
      // Names of its own: a record is read, kept and forgotten, so memory does not grow with their number.
      fleet::FleetNames names;
      auto node = fleet::RecordReader(names).read(path);
      if (!node.ok()) {
        ++bad;
        fmt::print(stderr, "{}: not kept: {}\n", printable(path.string()), node.error().message);
        continue;
      }
      node->path = fs::absolute(path).string();
      MUSTER_TRY(const bool isNew, store.add(*node, names, systemClock().wallUnix()));
      ++(isNew ? kept : known);
    }
  }
  if (options.json)
    fmt::print("{}\n", dumpJson({{"kept", kept}, {"known", known}, {"unreadable", bad}}));
  else
    fmt::print("{} kept, {} known already, {} could not be read\n", kept, known, bad);
  return bad > 0 ? kExitIncomplete : kExitAccepted;
}

Result<int> list(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openStore(options, history::Access::kRead));
  MUSTER_TRY(const auto runs, store.runs({options.node, options.newest}));
  if (options.json) {
    Json all = Json::array();
    for (const history::Run& run : runs) all.push_back(toJson(run));
    fmt::print("{}\n", dumpJson(all));
    return kExitAccepted;
  }
  for (const history::Run& run : runs) fmt::print("{}\n", runLine(run));
  if (runs.empty())
    fmt::print("no run{} is kept\n", options.node.empty() ? "" : " of " + printable(options.node));
  return kExitAccepted;
}

Result<int> show(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openStore(options, history::Access::kRead));
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
      json["figures"].push_back({{"stage", p.stage},
                                 {"metric", p.metric},
                                 {"labels", p.labels},
                                 {"device", p.device},
                                 {"unit", p.unit},
                                 {"n", p.n},
                                 {"median", numberToJson(p.median)},
                                 {"cv", numberToJson(p.cv)}});
    fmt::print("{}\n", dumpJson(json));
    return kExitAccepted;
  }
  fmt::print("{}\n  record {}\n  sha256 {}\n  id     {}\n  {} figures\n", runLine(run), printable(run.path),
             run.sha256, printable(run.runId), points.size());
  for (const auto& d : deviations)
    fmt::print("  {:<8} {} {} {}\n", d.outcome, printable(d.device), printable(d.metric),
               printable(d.detail));
  return kExitAccepted;
}

Result<int> trend(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openStore(options, history::Access::kRead));
  MUSTER_TRY(const auto points, store.points({options.node, options.newest}));
  const history::Trends trends = history::findTrends(history::seriesOf(points));
  const bool worse =
      std::any_of(trends.changes.begin(), trends.changes.end(), [](const auto& c) { return c.worse; });
  if (options.json) {
    fmt::print("{}\n", dumpJson(toJson(trends)));
    return worse ? kExitRejected : kExitAccepted;
  }
  size_t shown = 0;
  for (const history::Change& change : trends.changes) {
    if (++shown > kMostShown) break;
    fmt::print("{}{}{}\n  seen  {}\n  sure  {}\n  next  {}\n", change.worse ? "WORSE  " : "changed  ",
               printable(change.series.text()), change.series.simulated ? "  SIMULATED" : "", change.seen(),
               change.sure(), change.next());
  }
  if (trends.changes.size() > kMostShown)
    fmt::print("and {} more; --json lists them all\n", trends.changes.size() - kMostShown);
  fmt::print(
      "{} series, {} changed; {} have too few runs to tell (wanted: 4 of a part, and 6 successive pairs "
      "of its figure on the node)\n",
      trends.series, trends.changes.size(), trends.tooFew);
  return worse ? kExitRejected : kExitAccepted;
}

/// The two runs: both named, or the one named and its node's last acceptance before it.
Result<std::pair<history::Run, history::Run>> comparedRuns(history::Store& store,
                                                           const std::vector<std::string>& names) {
  MUSTER_TRY(history::Run first, store.find(names.front()));
  if (names.size() == 1) {
    MUSTER_TRY(history::Run accepted, store.lastAccepted(first.node, first.started, first.simulated));
    return std::pair{std::move(accepted), std::move(first)};
  }
  MUSTER_TRY(history::Run second, store.find(names[1]));
  return std::pair{std::move(first), std::move(second)};
}

void printComparison(const history::Comparison& c) {
  fmt::print("before {}\nafter  {}\n", runLine(c.before), runLine(c.after));
  for (const auto& fact : c.facts)
    fmt::print("  {} {}: {} -> {}\n", fact.device.empty() ? "node" : printable(fact.device),
               printable(fact.name), fact.before.empty() ? "(none)" : printable(fact.before, 100),
               fact.after.empty() ? "(none)" : printable(fact.after, 100));
  size_t shown = 0;
  for (const auto& f : c.figures) {
    if (++shown > kMostShown) break;
    fmt::print("  {} {} {} {} {}: {} -> {} ({:+.1f}%)\n", f.worse ? "WORSE  " : "changed",
               f.after.device.empty() ? "node" : printable(f.after.device), printable(f.after.stage),
               printable(f.after.metric), printable(f.after.labels),
               formatQuantity(f.before.median, f.after.unit), formatQuantity(f.after.median, f.after.unit),
               f.change * 100);
  }
  if (c.figures.size() > kMostShown)
    fmt::print("  and {} more; --json lists them all\n", c.figures.size() - kMostShown);
  fmt::print("{} figures changed, {} are alike, {} are in one of the two only\n", c.figures.size(), c.alike,
             c.onlyBefore + c.onlyAfter);
}

Result<int> compare(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openStore(options, history::Access::kRead));
  MUSTER_TRY(const auto runs, comparedRuns(store, options.runs));
  if (runs.first.node != runs.second.node || runs.first.simulated != runs.second.simulated)
    fmt::print(stderr, "muster: these are runs of {}{} and {}{}: places are compared, not parts\n",
               printable(runs.first.node), runs.first.simulated ? " (simulated)" : "",
               printable(runs.second.node), runs.second.simulated ? " (simulated)" : "");
  MUSTER_TRY(const history::Comparison comparison, history::compareRuns(store, runs.first, runs.second));
  if (options.json)
    fmt::print("{}\n", dumpJson(toJson(comparison)));
  else
    printComparison(comparison);
  const bool worse = std::any_of(comparison.figures.begin(), comparison.figures.end(),
                                 [](const auto& figure) { return figure.worse; });
  return worse ? kExitRejected : kExitAccepted;
}

}  // namespace

std::unique_ptr<HistoryCommands> addHistory(CLI::App& app) {
  auto commands = std::make_unique<HistoryCommands>();
  HistoryOptions& o = commands->options;
  commands->top = app.add_subcommand("history", "keep every run, and see how nodes change over their runs");
  commands->top->require_subcommand(1);
  commands->top->footer(kExamples);
  const auto sub = [&](const char* name, const char* help) {
    CLI::App* command = commands->top->add_subcommand(name, help);
    command->add_option("--db", o.database, "the history's file")->type_name("FILE");
    command->add_flag("--json", o.json, "as JSON");
    return command;
  };
  commands->add = sub("add", "keep the records of these runs");
  commands->add->add_option("runs", o.records, "run folders, folders of many, or record files")->required();
  commands->list = sub("list", "the runs that are kept");
  commands->show = sub("show", "one run: what it came to");
  commands->show->add_option("run", o.runs, "its number, or the beginning of its id")
      ->required()
      ->expected(1);
  commands->trend = sub("trend", "figures that changed over the runs of a node: steps and slopes");
  commands->compare = sub("compare", "two runs; with one, it and its node's last acceptance before it");
  commands->compare->add_option("runs", o.runs, "RUN, or BEFORE AFTER")->required()->expected(1, 2);
  for (CLI::App* command : {commands->list, commands->trend}) {
    command->add_option("--node", o.node, "only runs of this node")->type_name("NAME");
    command->add_option("--newest", o.newest, "only so many runs, the newest")->type_name("N");
  }
  return commands;
}

Result<int> historyCommand(const HistoryCommands& commands) {
  if (commands.add->parsed()) return add(commands.options);
  if (commands.list->parsed()) return list(commands.options);
  if (commands.show->parsed()) return show(commands.options);
  if (commands.trend->parsed()) return trend(commands.options);
  return compare(commands.options);
}

}  // namespace muster
