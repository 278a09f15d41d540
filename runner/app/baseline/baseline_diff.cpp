// SPDX-License-Identifier: Apache-2.0
// `muster baseline diff`, and the command line of both subcommands.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>

#include "runner/app/baseline/baseline_options.h"
#include "runner/app/input/shared_options.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/sku/profile_diff.h"

namespace muster {
namespace {

constexpr const char* kLearnHelp = R"(
Reads every record in RUN, excludes failed nodes and outlier devices, and writes a profile whose limits healthy nodes
meet. Requires at least 8 healthy nodes and at most 20% excluded nodes. More nodes give tighter limits at the same
--confidence.

  muster run plans/node-full.toml ...                       on every node, each with its own --out in runs/first
  muster baseline learn runs/first -o skus/h100-ours.toml   each limit is stored with its evidence
  muster baseline diff plans/skus/h100-sxm5-80gb.toml skus/h100-ours.toml
  muster judge runs/first/n17/record.json --sku skus/h100-ours.toml
  muster run plans/node-full.toml --skus skus               use the learned limits from now on

On the first machine, with too few nodes to learn from: corrects the shipped limits that it contradicts, and says of
each on which machine, when and on how many samples it was measured, and what was shipped.
  muster run plans/node-full.toml --out runs/one
  muster baseline learn runs/one --correct -o skus/h100-corrected.toml

Without hardware:
  muster run plans/node-quick.toml --simulate plans/scenarios/h100x8-healthy.toml --nodes 20 --out runs/sim
  muster baseline learn runs/sim -o learned.toml --allow-simulated)";

constexpr const char* kDiffHelp = R"(
A looser limit lets more nodes pass. What else of a limit differs (statistic, severity, warning band, source ...) stands
below it. The exit code is 0 whether or not the profiles differ.

  muster baseline diff plans/skus/h100-sxm5-80gb.toml skus/h100-ours.toml)";

const char* titleOf(Change change) {
  switch (change) {
    case Change::kLooser:
      return "looser";
    case Change::kTighter:
      return "tighter";
    case Change::kOther:
      return "changed";
    case Change::kAdded:
      return "added";
    case Change::kRemoved:
      return "removed";
  }
  return "";
}

std::string lineOf(const LimitChange& change) {
  const std::string by =
      std::isfinite(change.moved) && change.moved != 0
          ? fmt::format(" ({}{})", change.moved > 0 ? "+" : "", formatQuantity(change.moved, "ratio", 3))
          : "";
  if (change.change == Change::kAdded) return change.what + ": " + change.after;
  if (change.change == Change::kRemoved) return change.what + ": was " + change.before;
  return fmt::format("{}: {}, was {}{}", change.what, change.after, change.before, by);
}

}  // namespace

Result<int> baselineDiff(const BaselineOptions& options) {
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, options.pluginFolders, {}));
  MUSTER_TRY(const Profile before, loadProfile(options.before, &catalog, {tree.plans / "skus"}));
  MUSTER_TRY(const Profile after, loadProfile(options.after, &catalog, {tree.plans / "skus"}));
  const ProfileDiff diff = diffProfiles(before, after, [&](const std::string& metric) {
    const MetricSpec* spec = catalog.metric(metric);
    return spec == nullptr ? Direction::kNone : spec->direction;
  });
  for (const std::string& line : diff.facts) printText("{}\n", line);
  for (const Change kind :
       {Change::kLooser, Change::kTighter, Change::kOther, Change::kAdded, Change::kRemoved}) {
    bool first = true;
    for (const LimitChange& change : diff.limits) {
      if (change.change != kind) continue;
      if (first) printText("\n{}\n", titleOf(kind));
      first = false;
      printText("  {}\n", printable(lineOf(change), 600));
      for (const std::string& field : change.fields) printText("    {}\n", printable(field, 600));
    }
  }
  if (!diff.facts.empty() || !diff.limits.empty()) printText("\n");
  printText("{} limits as before\n", diff.same);
  return kExitAccepted;
}

CLI::App* addBaseline(CLI::App& app, BaselineOptions& o) {
  CLI::App* baseline =
      app.add_subcommand("baseline", "learn a SKU profile from a fleet, or compare two profiles");
  baseline->require_subcommand(1);
  CLI::App* learn =
      baseline->add_subcommand("learn", "learn a profile with limits from the records of a fleet");
  learn->add_option("run", o.run, "directory with the records of all nodes")->required()->type_name("RUN");
  learn->add_option("-o,--out", o.out, "profile file to write")->required()->type_name("FILE.toml");
  learn
      ->add_option("--base", o.base,
                   "profile that supplies all other limits, peaks and parameters (default: the one used in "
                   "most records)")
      ->type_name("FILE");
  learn->add_option("--name", o.name,
                    "name of the profile (default: that of the base profile, which --skus then replaces)");
  auto* correct = learn->add_flag("--correct", o.correct,
                                  "move only those limits of the base profile that the records contradict or "
                                  "would tighten; one node is enough");
  learn
      ->add_option("--tolerance", o.tolerance,
                   "with --correct: how far limits without a tolerance of their own lie from the measured "
                   "median")
      ->needs(correct)
      ->type_name("SHARE")
      ->capture_default_str();
  learn
      ->add_option("--false-rejects", o.falseRejects,
                   "largest share of healthy nodes that the limits may reject")
      ->excludes(correct)
      ->type_name("SHARE")
      ->capture_default_str();
  learn->add_option("--confidence", o.confidence, "probability that this share is not exceeded")
      ->excludes(correct)
      ->type_name("SHARE")
      ->capture_default_str();
  learn->add_option("--min-nodes", o.learn.leastNodes, "least number of healthy nodes per metric")
      ->excludes(correct)
      ->check(CLI::Range(5, 100000))
      ->capture_default_str();
  learn->add_flag("--force", o.force, "overwrite FILE.toml if it exists");
  learn->add_flag("--allow-simulated", o.allowSimulated,
                  "allow simulated records; the profile is marked SIMULATED");
  learn->add_flag("--unconfirmed", o.unconfirmed,
                  "trust the run directory of a Slurm run for jobs that Slurm no longer knows, and a "
                  "delivery, which lacks the key of its run");
  learn->footer(kLearnHelp);
  CLI::App* diff =
      baseline->add_subcommand("diff", "compare two profiles: looser, tighter and changed limits");
  diff->add_option("before", o.before, "profile")->required()->type_name("A");
  diff->add_option("after", o.after, "profile")->required()->type_name("B");
  diff->footer(kDiffHelp);
  for (CLI::App* sub : {learn, diff}) addPluginFolders(sub, o.pluginFolders);
  return baseline;
}

Result<int> baselineCommand(const CLI::App& baseline, BaselineOptions& options) {
  return baseline.got_subcommand("learn") ? baselineLearn(options) : baselineDiff(options);
}

}  // namespace muster
