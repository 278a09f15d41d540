// SPDX-License-Identifier: Apache-2.0
// The command line of `muster history`: subcommands, options, help by example. See history_command.h.
#include "runner/app/history/history_command.h"

namespace muster {
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
  muster history prune                          what thinning old runs would remove; --apply does it
  muster history delta --survey runs/look       which nodes must run again since the last acceptance
  muster history delta runs/n17-again --out runs/accepted-2     accept the fleet anew with those

trend and compare end with 1 if something got worse, add with 3 if a record could not be read, delta with 3 if
nodes must run again.)";

constexpr const char* kDeltaExamples = R"(
After a replacement only the nodes that it touched run again. RUN holds their new records; those of the other nodes are
taken from the accepted fleet (--since, else the newest accepted one in the history). A node must run again when a
newer record shows another serial or driver in it, when one of its parts turned up in another node, or when the record
that it was accepted by is gone. A survey is any later run, of whatever plan: only its inventory is looked at.

Nothing is merged while a node must run again (exit 3), or when plan, overrides, profile or kind of a new record are not
those of the acceptance (exit 2). Else --out gets fleet.json and fleet.html, which say which node was taken from which
run, and the records; the exit code is the fleet's.

Examples:
  muster history add runs/accepted                              keep the fleet that was accepted
  muster slurm submit plans/environment.toml --nodes all --out runs/look
  muster history delta --survey runs/look                       says: run again: n17,n23
  muster slurm submit plans/node-full.toml --nodes n17,n23 --out runs/again
  muster history delta runs/again --survey runs/look --out runs/accepted-2
  muster history delta runs/again --since runs/accepted --out runs/accepted-2)";

constexpr const char* kPruneExamples = R"(
Thins the history, which otherwise grows by about 15 KB per run of eight GPUs. Only the history's own copy is removed: run
folders and their records stay. Without --apply nothing changes: the numbers of runs kept and removed are printed.

Kept of each node, its measured and its simulated runs apart:
  every run of the last 90 days (--keep-days), and the newest 20 whatever their age (--keep-newest)
  the last accepted run, which `compare` sets later runs beside
  of older runs the last of every 7 days (--every): one accepted, one rejected, and so on, so that `trend` still sees
  steps and slopes over years
Fleets that were kept stay. A run that was pruned is not added again by a later `history add`.

Runs are removed in small transactions: interrupt it at any time, start it again to finish. Then the file is made smaller,
which needs as much free disk space as the runs that remain take.

Examples:
  muster history prune                                    what the default rule would remove
  muster history prune --apply                            remove it
  muster history prune --keep-days 365 --every 30         keep a year, and a run per month before it)";

void addPrune(CLI::App* prune, HistoryOptions& o) {
  prune->add_option("--keep-days", o.rule.days, "keep every run younger than this")
      ->type_name("DAYS")
      ->check(CLI::Range(0.0, 36500.0))
      ->capture_default_str();
  prune->add_option("--keep-newest", o.rule.newest, "keep this many runs per node, however old")
      ->type_name("N")
      ->capture_default_str();
  prune->add_option("--every", o.rule.every, "of older runs keep one per this many days and acceptance")
      ->type_name("DAYS")
      ->check(CLI::Range(1.0, 36500.0))
      ->capture_default_str();
  prune->add_flag("--apply", o.apply, "remove them (default: only say what would be removed)");
  prune->footer(kPruneExamples);
}

void addDelta(CLI::App* delta, HistoryOptions& o) {
  delta->add_option("runs", o.reruns, "folders of runs after the replacement")->type_name("RUN");
  delta->add_option("--since", o.since, "folder of the accepted fleet (default: the last one in the history)")
      ->type_name("FOLDER");
  delta->add_option("--survey", o.surveys, "later runs of any plan, which show what parts nodes have now")
      ->type_name("FOLDER")
      ->allow_extra_args(false);
  delta->add_option("--out", o.out, "folder for the merged fleet: fleet.json, fleet.html, records")
      ->type_name("FOLDER");
  delta
      ->add_option("--waivers", o.waivers,
                   "known failures that the fleet waives, as `muster fleet` does with it")
      ->type_name("FILE");
  delta->add_flag("--reject-outliers", o.rejectOutliers,
                  "reject a node that its peers name, as `muster fleet` does with it");
  delta->footer(kDeltaExamples);
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
  commands->fleets = sub("fleets", "the fleets that are kept, and whether they were accepted");
  commands->delta =
      sub("delta", "after a replacement: which nodes must run again; with their runs, accept the fleet anew");
  addDelta(commands->delta, o);
  commands->prune =
      sub("prune", "thin old runs by a rule; shows what it would remove unless --apply is given");
  addPrune(commands->prune, o);
  for (CLI::App* command : {commands->list, commands->trend}) {
    command->add_option("--node", o.node, "only runs of this node")->type_name("NAME");
    command->add_option("--newest", o.newest, "only so many runs, the newest")->type_name("N");
  }
  return commands;
}

}  // namespace muster
