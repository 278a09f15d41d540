// SPDX-License-Identifier: Apache-2.0
// The options of `muster check`, `explain`, `init`, `plugins` and `skus`.
#include <CLI/CLI.hpp>

#include "runner/app/input/shared_options.h"
#include "runner/app/prepare/prepare_options.h"

namespace muster {
namespace {

constexpr const char* kCheckExamples = R"(
Exit code: 0 all plans are valid, 2 a plan has an error.

--json prints {"valid", "files", "errors", "warnings"}. Each error has the file, line, column and message; where the
error is about a value or a name also "found", "required" and "suggestion". In a Lua plan there is no column.
--schema prints a JSON Schema, with which editors complete and check TOML; with --plugins and --skus it has yours too.

Examples:
  muster check plans/*.toml plans/*.lua
  muster check --json my-plan.toml | jq '.errors[] | .file, .line, .message'
  generate-plan | muster check -
  muster check --schema plan --plugins mine/ > plan.json
  muster check my-plan.toml --set gemm.size=1024 --plugins mine/ --skus ours/)";

constexpr const char* kExplainExamples = R"(
Lists what the plan comes to: for each stage its test, ranks, cases and parameters, then each limit with where it is defined
and where its value comes from, then the metrics that no limit is about. A limit holds for those measurements of its metric
that carry its labels. The limits on devices that the inventory itself checks (their number, their match with the SKU) are not
listed. Durations ("about 30s") add up the sampling times of the parameters, and the time that patterns, training and
collectives take at the profile's rates; without a profile these have none. Starting processes and libraries comes on top.
Exit code: 0, or 2 if the plan has an error.

Examples:
  muster explain plans/node-full.toml --sku h100-sxm5-80gb
  muster explain plans/cluster.toml --sku h100-sxm5-80gb --nodes 16
  muster explain my-plan.toml --sku ours --skus ours/ --json)";

constexpr const char* kInitExamples = R"(
Writes plan.toml (stages) and site.toml (limits of this site; the plan includes it) and asks nothing. Files that are there
are not changed. The limits of the SKU profile apply as well. Then edit both, and look at them with `muster explain`.

Examples:
  muster init acceptance
  muster init acceptance --sku h100-sxm5-80gb --source "contract 4711" \
    --min 'compute.gemm_throughput{dtype=bf16}=620 TFLOP/s' --min 'memory.bandwidth{op=copy}=2.7 TB/s'
  muster init my-cpu --sku host)";

}  // namespace

CLI::App* addCheck(CLI::App& app, CheckOptions& o) {
  CLI::App* check = app.add_subcommand("check", "validate a plan and list all errors; runs nothing");
  check->add_option("plans", o.plans,
                    "plan files; - reads standard input (as Lua if a line begins with return)");
  addSets(check, o.sets);
  CLI::Option* json =
      check->add_flag("--json", o.json, "print the result as one JSON object, for editors and scripts");
  check
      ->add_option(
          "--schema", o.schema,
          "print the JSON Schema of such files, for editors: plan, profile, scenario, waivers, requirements")
      ->type_name("KIND")
      ->check(CLI::IsMember({"plan", "profile", "scenario", "waivers", "requirements"}))
      ->excludes(json)
      ->excludes("plans");
  addPluginFolders(check, o.pluginFolders);
  addSkuFolders(check, o.skuFolders);
  check->callback([&o] {
    if (o.plans.empty() && o.schema.empty()) throw CLI::RequiredError("plans");
  });
  check->footer(kCheckExamples);
  return check;
}

CLI::App* addExplain(CLI::App& app, ExplainOptions& o) {
  CLI::App* explain =
      app.add_subcommand("explain", "show the stages, cases and limits of a plan; runs nothing");
  explain->add_option("plan", o.plan, "plan file (.toml or .lua)")->required();
  addSets(explain, o.sets);
  explain->add_option("--sku", o.sku, "SKU profile whose limits and parameters apply (default: the plan's)");
  explain->add_option("--nodes", o.nodes, "number of nodes, for stages of scope cluster")
      ->check(CLI::Range(1, 100000));
  explain->add_option("--devices", o.devices, "devices of a node (default: the profile's number, or 1)")
      ->check(CLI::Range(1, 1024));
  explain->add_flag("--simulated", o.simulated, "leave out what `muster run --simulate` does not measure");
  addPluginFolders(explain, o.pluginFolders);
  addSkuFolders(explain, o.skuFolders);
  explain->add_flag("--json", o.json, "as JSON, with all parameters of each case");
  explain->footer(kExplainExamples);
  return explain;
}

CLI::App* addInit(CLI::App& app, InitOptions& o) {
  CLI::App* init = app.add_subcommand("init", "write a plan and a site file for this machine");
  init->add_option("directory", o.folder, "where plan.toml and site.toml are written")->capture_default_str();
  init->add_option("--name", o.name, "name of the plan")->capture_default_str();
  init->add_option("--sku", o.sku, "SKU profile (default: the GPU model found on the PCI bus)");
  init->add_option("--min", o.min, "required minimum: 'METRIC{LABEL=VALUE}=VALUE'; may be repeated")
      ->type_name("LIMIT")
      ->allow_extra_args(false);
  init->add_option("--max", o.max, "required maximum, likewise")->type_name("LIMIT")->allow_extra_args(false);
  init->add_option("--source", o.source, "where these limits come from, for reports")->capture_default_str();
  addSkuFolders(init, o.skuFolders);
  init->footer(kInitExamples);
  return init;
}

CLI::App* addPlugins(CLI::App& app, PluginsOptions& o) {
  CLI::App* plugins =
      app.add_subcommand("plugins", "list plugins, or show the tests, parameters and metrics of one");
  plugins->add_option("name", o.name, "plugin");
  addPluginFolders(plugins, o.folders);
  CLI::Option* json = plugins->add_flag("--json", o.json, "as JSON");
  plugins
      ->add_flag("--reference", o.reference,
                 "print one Markdown page: every test, parameter and metric with its meaning")
      ->excludes(json);
  return plugins;
}

CLI::App* addSkus(CLI::App& app, SkusOptions& o) {
  CLI::App* skus = app.add_subcommand("skus", "list SKU profiles, or show the limits and sources of one");
  skus->add_option("name", o.name, "profile");
  addSkuFolders(skus, o.folders);
  return skus;
}

}  // namespace muster
