// SPDX-License-Identifier: Apache-2.0
// The command line of `muster history`: subcommands, options, help by example. See history_command.h.
#include "runner/app/history/compare_command.h"
#include "runner/app/history/history_command.h"

namespace muster {
namespace {

constexpr const char* kExamples = R"(
The history is one SQLite file: --db FILE, else $MUSTER_HISTORY, else ~/.local/state/muster/history.sqlite.

Examples:
  muster history add runs/n17 runs/n18          add these runs (known ones are skipped)
  muster history add /shared/fleet-2026-11      add the runs of all nodes of a fleet
  muster history list --node n17                list the stored runs with their numbers
  muster history trend --node n17               show significant steps and slopes
  muster history compare 12                     compare run 12 with the last accepted run of its node
  muster history compare 12 15                  compare run 12 with run 15: parts, driver, metrics
  muster history prune                          list old runs to remove; --apply removes them
  muster history delta --survey runs/look       list nodes to retest since the last acceptance
  muster history delta runs/n17-again --out runs/accepted-2     re-accept the fleet with these

Exit code: trend and compare 1 if a metric got worse, compare also if the earlier run was accepted and the later one was
not, add 3 if a record could not be read, delta 3 if nodes must be
retested.)";

constexpr const char* kDeltaExamples = R"(
After a repair, only the affected nodes are retested. RUN holds their new records; the records of all other nodes come
from the accepted fleet (--since, default: the newest accepted fleet in the history). A node must be retested if a newer
record shows another serial number or driver, if one of its parts was found in another node, if the record it was
accepted with is gone, or if RUN ran or was submitted (Slurm, Kubernetes) on it and has no record of it.
--survey takes later runs of any plan with the fleet's backend; only their inventory is used.

Nothing is merged while a node must be retested (exit 3) or if the plan, overrides, profile or backend of a new record
differ from the accepted fleet (exit 2). Otherwise writes the records, fleet.json and fleet.html, which state the source
run of each node, to --out; the exit code is that of the fleet.

Examples:
  muster history add runs/accepted                              store the accepted fleet
  muster slurm submit plans/environment.toml --set backend=cuda --sku auto --nodes all --out runs/look
  muster history delta --survey runs/look                       prints: retest: n17,n23
  muster slurm submit plans/node-full.toml --nodes n17,n23 --out runs/again
  muster history delta runs/again --survey runs/look --out runs/accepted-2
  muster history delta runs/again --since runs/accepted --out runs/accepted-2)";

constexpr const char* kPruneExamples = R"(
Removes old runs from the history, which grows by about 15 KB per run of eight GPUs. Run directories and their records
are not touched. Without --apply nothing changes; the numbers of runs kept and removed are printed.

Kept for each node, separately for measured and simulated runs:
  every run of the last 90 days (--keep-days), and the newest 20 of any age (--keep-newest)
  the last accepted run, which `compare` uses as the reference
  of older runs, the last per 7 days (--every) and verdict (accepted, rejected, ...), so that `trend` still finds
  steps and slopes over years
Stored fleets are kept. A later `history add` does not add a pruned run again.

Runs are removed in small transactions: the command can be interrupted at any time and restarted. The file is then
compacted, which needs as much free disk space as the remaining runs take.

Examples:
  muster history prune                                    list what the default rule removes
  muster history prune --apply                            remove these runs
  muster history prune --keep-days 365 --every 30         keep one year, and one run per month before)";

constexpr const char* kCompareExamples = R"(
Nodes are paired by name, several runs of one node by what they measured, devices by their place. With fewer than eight
nodes each pair of runs is compared as `muster history compare` does: a metric is worse beyond 2% and beyond what its
samples explain. With more, the spread of the nodes' changes is the noise: listed are metrics that moved on the whole fleet
by more than the noise and 2% (temperatures: 5 degrees), nodes that moved otherwise than the others, and devices that moved
otherwise than the others of their node. Stages that ran with other parameters are named and not compared. The history,
which knows more runs, is not needed.

Exit code: 0, or 1 if a metric got worse or an accepted node is missing or no longer accepted; 3 if otherwise a record of
a folder could not be used: it is named, and left out.

Examples:
  muster compare runs/driver-570 runs/driver-580
  muster compare runs/n17/record.json runs/n17-again/record.json --json)";

void addPrune(CLI::App* prune, HistoryOptions& o) {
  prune->add_option("--keep-days", o.rule.days, "keep all runs younger than this")
      ->type_name("DAYS")
      ->check(CLI::Range(0.0, 36500.0))
      ->capture_default_str();
  prune->add_option("--keep-newest", o.rule.newest, "keep this many newest runs per node, of any age")
      ->type_name("N")
      ->capture_default_str();
  prune->add_option("--every", o.rule.every, "of older runs, keep one per this many days and verdict")
      ->type_name("DAYS")
      ->check(CLI::Range(1.0, 36500.0))
      ->capture_default_str();
  prune->add_flag("--apply", o.apply, "remove the runs (default: only list them)");
  prune->footer(kPruneExamples);
}

void addUnconfirmed(CLI::App* command, HistoryOptions& o) {
  command->add_flag("--unconfirmed", o.unconfirmed,
                    "trust the run directory of a Slurm run for jobs that Slurm no longer knows, and a "
                    "delivery, which lacks the key of its run");
}

void addDelta(CLI::App* delta, HistoryOptions& o) {
  delta->add_option("runs", o.reruns, "directories of runs after the repair")->type_name("RUN");
  delta
      ->add_option("--since", o.since,
                   "directory of the accepted fleet (default: the newest accepted fleet in the history)")
      ->type_name("DIR");
  delta
      ->add_option("--survey", o.surveys,
                   "inventory scan: later runs of any plan that show the current parts")
      ->type_name("DIR")
      ->allow_extra_args(false);
  delta->add_option("--out", o.out, "directory for the merged fleet: fleet.json, fleet.html, records")
      ->type_name("DIR");
  delta->add_option("--waivers", o.waivers, "approved, time-limited waivers, as in `muster fleet`")
      ->type_name("FILE");
  delta->add_flag("--reject-outliers", o.rejectOutliers,
                  "also reject statistical outliers within limits, as in `muster fleet`");
  addUnconfirmed(delta, o);
  delta->footer(kDeltaExamples);
}

}  // namespace

std::unique_ptr<HistoryCommands> addHistory(CLI::App& app) {
  auto commands = std::make_unique<HistoryCommands>();
  HistoryOptions& o = commands->options;
  commands->top = app.add_subcommand("history", "store runs and track how nodes change over time");
  commands->top->require_subcommand(1);
  commands->top->footer(kExamples);
  const auto sub = [&](const char* name, const char* help) {
    CLI::App* command = commands->top->add_subcommand(name, help);
    command->add_option("--db", o.database, "history file")->type_name("FILE");
    command->add_flag("--json", o.json, "print JSON");
    return command;
  };
  commands->add = sub("add", "add the records of these runs");
  commands->add->add_option("runs", o.records, "run directories, parents of run directories, or record files")
      ->required();
  addUnconfirmed(commands->add, o);
  commands->list = sub("list", "list the stored runs");
  commands->show = sub("show", "show one run's result");
  commands->show->add_option("run", o.runs, "run number, or the first characters of the run id")
      ->required()
      ->expected(1);
  commands->trend = sub("trend", "show metrics that changed over the runs of a node: steps and slopes");
  commands->compare =
      sub("compare",
          "compare two runs; with one RUN, compare it with the last accepted run of its node before it");
  commands->compare->add_option("runs", o.runs, "RUN, or BEFORE AFTER")->required()->expected(1, 2);
  commands->fleets = sub("fleets", "list the stored fleets with their verdicts");
  commands->delta = sub("delta", "after a repair: list nodes to retest, then re-accept the fleet");
  addDelta(commands->delta, o);
  commands->prune = sub("prune", "remove old runs by a retention rule; only lists them without --apply");
  addPrune(commands->prune, o);
  for (CLI::App* command : {commands->list, commands->trend}) {
    command->add_option("--node", o.node, "show only runs of this node")->type_name("NAME");
    command->add_option("--newest", o.newest, "show only this many of the newest runs")->type_name("N");
  }
  return commands;
}

CLI::App* addCompare(CLI::App& app, CompareOptions& o) {
  CLI::App* compare =
      app.add_subcommand("compare", "compare two records or fleets: configuration, results, metrics");
  compare->add_option("before", o.before, "record.json, or directory with runs")->required();
  compare->add_option("after", o.after, "likewise")->required();
  compare->add_flag("--json", o.json, "print JSON");
  compare->footer(kCompareExamples);
  return compare;
}

}  // namespace muster
