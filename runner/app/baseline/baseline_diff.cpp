// SPDX-License-Identifier: Apache-2.0
// `muster baseline diff`, and the command line of both subcommands.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>

#include "runner/app/baseline/baseline_options.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/sku/profile_diff.h"

namespace muster {
namespace {

constexpr const char* kLearnHelp = R"(
Reads every record under RUN, leaves out nodes that failed and devices that are unlike the others, and writes a
profile whose limits a healthy node keeps. Needs 8 healthy nodes and at most 20% sick ones, else it refuses and says
what would do. The more nodes, the tighter the limits: they hold with --confidence.

  muster run plans/node-full.toml ...                       on every node, each into a folder below runs/first
  muster baseline learn runs/first -o skus/h100-ours.toml   value, spread, n, versions and date stand beside each limit
  muster baseline diff plans/skus/h100-sxm5-80gb.toml skus/h100-ours.toml
  muster judge runs/first/n17/record.json --sku skus/h100-ours.toml
  muster run plans/node-full.toml --skus skus               from now on judged by what this fleet can do

Try it without hardware:
  muster run plans/node-quick.toml --simulate plans/scenarios/h100x8-healthy.toml --nodes 20 --out runs/sim
  muster baseline learn runs/sim -o learned.toml --allow-simulated)";

constexpr const char* kDiffHelp = R"(
A limit that loosens lets more pass than before. Exit code 0 also when something changed.

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
  MUSTER_TRY(const Profile before, loadProfile(options.before, &catalog));
  MUSTER_TRY(const Profile after, loadProfile(options.after, &catalog));
  const ProfileDiff diff = diffProfiles(before, after, [&](const std::string& metric) {
    const MetricSpec* spec = catalog.metric(metric);
    return spec == nullptr ? Direction::kNone : spec->direction;
  });
  for (const std::string& line : diff.facts) fmt::print("{}\n", line);
  for (const Change kind :
       {Change::kLooser, Change::kTighter, Change::kOther, Change::kAdded, Change::kRemoved}) {
    bool first = true;
    for (const LimitChange& change : diff.limits) {
      if (change.change != kind) continue;
      if (first) fmt::print("\n{}\n", titleOf(kind));
      first = false;
      fmt::print("  {}\n", printable(lineOf(change), 600));
    }
  }
  fmt::print("{}{} limits as before\n", diff.facts.empty() && diff.limits.empty() ? "" : "\n", diff.same);
  return kExitAccepted;
}

CLI::App* addBaseline(CLI::App& app, BaselineOptions& o) {
  CLI::App* baseline =
      app.add_subcommand("baseline", "learn a SKU profile from a fleet, or compare two profiles");
  baseline->require_subcommand(1);
  CLI::App* learn = baseline->add_subcommand("learn", "from the records of a fleet to a profile with limits");
  learn->add_option("run", o.run, "folder with the records of all nodes")->required()->type_name("RUN");
  learn->add_option("-o,--out", o.out, "profile to write")->required()->type_name("FILE.toml");
  learn
      ->add_option("--base", o.base,
                   "profile whose other limits, peaks and parameters are taken over (default: the one that "
                   "the records were judged by)")
      ->type_name("FILE");
  learn->add_option("--name", o.name,
                    "name of the profile (default: the base's, so that --skus replaces it)");
  learn->add_option("--false-rejects", o.falseRejects, "share of healthy nodes that the limits may reject")
      ->type_name("SHARE")
      ->capture_default_str();
  learn->add_option("--confidence", o.confidence, "that they reject no more")
      ->type_name("SHARE")
      ->capture_default_str();
  learn->add_option("--min-nodes", o.learn.leastNodes, "healthy nodes that each figure needs")
      ->check(CLI::Range(5, 100000))
      ->capture_default_str();
  learn->add_flag("--force", o.force, "replace FILE.toml if it is there");
  learn->add_flag("--allow-simulated", o.allowSimulated,
                  "learn from simulated records; the profile says SIMULATED");
  learn->footer(kLearnHelp);
  CLI::App* diff =
      baseline->add_subcommand("diff", "what changed between two profiles: which limits loosen or tighten");
  diff->add_option("before", o.before, "profile")->required()->type_name("A");
  diff->add_option("after", o.after, "profile")->required()->type_name("B");
  diff->footer(kDiffHelp);
  for (CLI::App* sub : {learn, diff})
    sub->add_option("--plugins", o.pluginFolders, "folder with more plugins")
        ->type_name("FOLDER")
        ->allow_extra_args(false);
  return baseline;
}

Result<int> baselineCommand(const CLI::App& baseline, BaselineOptions& options) {
  return baseline.got_subcommand("learn") ? baselineLearn(options) : baselineDiff(options);
}

}  // namespace muster
