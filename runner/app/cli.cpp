// SPDX-License-Identifier: Apache-2.0
// The command line of `muster`: subcommands, options, help by example, exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include <cstdio>

#include "runner/app/attest/attest_options.h"
#include "runner/app/baseline/baseline_options.h"
#include "runner/app/commands/commands.h"
#include "runner/app/completion.h"
#include "runner/app/help_text.h"
#include "runner/app/history/compare_command.h"
#include "runner/app/history/history_command.h"
#include "runner/app/kube/kube_options.h"
#include "runner/app/process/print_error.h"
#include "runner/app/report/report_options.h"
#include "runner/app/slurm/slurm_options.h"
#include "runner/app/submit/submit_input.h"
#include "runner/app/usage_error.h"
#include "runner/core/build_info.h"
#include "runner/core/duration.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/hosts/host_list.h"
#include "runner/judge/exit_code.h"
#include "runner/record/record_mac.h"

namespace muster {
namespace {

struct Arguments {
  RunOptions run;
  FleetCommandOptions fleet;
  ImportOptions import;
  ExplainOptions explain;
  InitOptions init;
  JudgeOptions judge;
  CaptureOptions capture;
  BaselineOptions baseline;
  SlurmOptions slurm;
  KubeOptions kube;
  CheckOptions check;
  std::vector<std::filesystem::path> pluginFolders;
  std::vector<std::filesystem::path> skuFolders;
  ReportOptions report;
  RedactOptions redact;
  CompareOptions compare;
  RmaOptions rma;
  SignOptions sign;
  VerifyOptions verify;
  std::string name;
  std::string noGpu = "fail";
  std::string shell;
  std::string arrival;
  std::string budget;
  std::string nodeNames;
  std::filesystem::path recordKey;
  std::string lostAfter = "10s";
  bool json = false;
  bool reference = false;
  bool plain = false;
};

CLI::Option* addSets(CLI::App* app, std::vector<std::string>& sets) {
  return app
      ->add_option("--set", sets,
                   "override a plan value: STAGE.PARAM=VALUE, STAGE.timeout=VALUE, sku=NAME ...")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void addPlugins(CLI::App* app, std::vector<std::filesystem::path>& folders) {
  app->add_option("--plugins", folders, "directory with additional plugins")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

void addSkus(CLI::App* app, std::vector<std::filesystem::path>& folders) {
  app->add_option("--skus", folders, "directory with additional SKU profiles")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

CLI::Option* addWaivers(CLI::App* app, std::filesystem::path& waivers) {
  return app
      ->add_option("--waivers", waivers,
                   "approved, time-limited waivers; format: share/muster/plans/README.md")
      ->type_name("FILE");
}

/// Adds --fleet-id, which launchers may also pass in the environment.
void addFleetId(CLI::App* app, std::string& id, const char* help) {
  app->add_option("--fleet-id", id, help)
      ->type_name("ID")
      ->envname("MUSTER_FLEET_ID")
      ->check([](const std::string& text) {
        return isPlainName(text) ? std::string()
                                 : "expected letters, digits, '-', '_' and '.', found " + printable(text, 80);
      });
}

/// Adds the options of a run over several nodes.
void addPlace(CLI::App* run, Arguments& a) {
  run->add_option("--nnodes", a.run.nodeCount, "number of nodes in this run")->check(CLI::Range(1, 65536));
  run->add_option("--node-rank", a.run.nodeRank, "rank of this node, from 0")->check(CLI::Range(0, 65535));
  run->add_option("--node-name", a.run.nodeName, "node name in the record (default: host name)")
      ->type_name("NAME");
  run->add_option("--node-names", a.nodeNames, "names of all simulated nodes of --nnodes, in rank order")
      ->type_name("HOSTLIST");
  addFleetId(run, a.run.fleetId, "ID of the fleet run this run belongs to");
  run->add_option("--record-key", a.recordKey,
                  "this node's key file; signs the record with a MAC that `muster fleet` verifies")
      ->type_name("FILE");
  run->add_option("--rendezvous", a.run.rendezvous,
                  "host[:port] of node 0's rendezvous store (default port: derived from MUSTER_TOKEN)")
      ->type_name("HOST:PORT");
  run->add_option("--arrival", a.arrival,
                  "how long a cluster stage waits for all nodes to join (default: the stage's timeout)")
      ->type_name("DURATION");
  run->add_option("--lost-after", a.lostAfter, "declare a node lost after this long without a heartbeat")
      ->type_name("DURATION")
      ->capture_default_str();
}

CLI::App* addRun(CLI::App& app, Arguments& a) {
  CLI::App* run = app.add_subcommand("run", "run a plan on this node and check the results");
  run->add_option("plan", a.run.plan, "plan file (.toml or .lua)");
  run->add_option("--out", a.run.out, "run directory (default: ./muster-PLAN-HOST-TIME)")->type_name("DIR");
  run->add_option("--resume", a.run.resume,
                  "resume the interrupted run in DIR; if a plan is given and DIR holds no run, start one")
      ->type_name("DIR");
  addSets(run, a.run.sets);
  run->add_option("--sku", a.run.sku, "SKU profile to use instead of the plan's; auto: match the devices");
  run->add_option("--simulate", a.run.scenario, "use the simulated devices of this scenario, in virtual time")
      ->type_name("SCENARIO");
  run->add_option("--nodes", a.run.nodes, "number of simulated nodes, with --simulate")
      ->check(CLI::Range(1, 100000));
  addWaivers(run, a.run.waivers);
  addPlace(run, a);
  run->add_option("--scope", a.run.scopes, "run only stages of these scopes: device, node, cluster")
      ->delimiter(',')
      ->check(CLI::IsMember({"device", "node", "cluster"}));
  run->add_option("--only", a.run.selection.stages,
                  "run only these stages, without their prerequisites; partial runs never accept")
      ->type_name("STAGE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  run->add_option(
         "--device", a.run.selection.devices,
         "run stages of scope device only on these devices, for example gpu5; other stages are left out")
      ->type_name("DEVICE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  run->add_option("--budget", a.budget,
                  "start no stage whose timeout would end after this time; continue with --resume")
      ->type_name("DURATION");
  run->add_option("--seed", a.run.seed, "seed for all generated data")
      ->capture_default_str()
      ->check([](const std::string& text) {  // CLI11 reads -1 as the largest number
        const bool whole = text.find_first_not_of("0123456789") == std::string::npos;
        return whole ? std::string() : "expected a whole number, 0 or more, found " + printable(text, 40);
      });
  run->add_flag("--strict", a.run.strict, "measurements without a limit block acceptance");
  run->add_option("--no-gpu", a.noGpu, "result on a node without a GPU: fail (exit 3) or skip (exit 5)")
      ->check(CLI::IsMember({"fail", "skip"}))
      ->capture_default_str();
  run->add_option("--plugins", a.run.pluginFolders,
                  "directory with additional plugins; a resumed run needs the same ones named again")
      ->type_name("DIR")
      ->allow_extra_args(false);
  addSkus(run, a.run.skuFolders);
  run->add_flag("--json", a.json, "print events as JSON, one object per line");
  run->add_flag("--plain", a.plain, "print plain lines even on a terminal");
  run->footer(kRunExamples);
  return run;
}

CLI::App* addCheck(CLI::App& app, CheckOptions& o) {
  CLI::App* check = app.add_subcommand("check", "validate a plan and list all errors; runs nothing");
  check->add_option("plans", o.plans,
                    "plan files; - reads standard input (as Lua if a line begins with return)");
  addSets(check, o.sets);
  CLI::Option* json =
      check->add_flag("--json", o.json, "print the result as one JSON object, for editors and scripts");
  check
      ->add_option("--schema", o.schema,
                   "print the JSON Schema of such files, for editors: plan, profile, scenario, waivers")
      ->type_name("KIND")
      ->check(CLI::IsMember({"plan", "profile", "scenario", "waivers"}))
      ->excludes(json)
      ->excludes("plans");
  addPlugins(check, o.pluginFolders);
  addSkus(check, o.skuFolders);
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
  addPlugins(explain, o.pluginFolders);
  addSkus(explain, o.skuFolders);
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
  addSkus(init, o.skuFolders);
  init->footer(kInitExamples);
  return init;
}

CLI::App* addJudge(CLI::App& app, Arguments& a) {
  CLI::App* judge = app.add_subcommand("judge", "re-evaluate stored samples; no hardware needed");
  judge->add_option("record", a.judge.record, "record.json")->required();
  judge->add_option("--sku", a.judge.profile, "profile file; its limits replace those in the record")
      ->type_name("FILE");
  addWaivers(judge, a.judge.waivers);
  judge->add_option("--out", a.judge.out, "directory for the new record and reports")->type_name("DIR");
  judge->add_flag("--strict", a.judge.strict, "measurements without a limit block acceptance");
  judge->footer(kJudgeExamples);
  return judge;
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

CLI::App* addCapture(CLI::App& app, CaptureOptions& o) {
  CLI::App* capture = app.add_subcommand("capture", "write a record's values as a scenario for --simulate");
  capture->add_option("record", o.record, "record.json")->required();
  capture->add_option("--out", o.out, "the scenario's file")->type_name("FILE")->capture_default_str();
  capture->add_option("--name", o.name, "name of the scenario (default: that of the file)");
  capture->footer(kCaptureExamples);
  return capture;
}

CLI::App* addImport(CLI::App& app, ImportOptions& o) {
  CLI::App* import = app.add_subcommand("import", "judge results of other tools; Muster measures nothing");
  import->add_option("files", o.files, "files that other tools wrote")->required();
  import->add_option("--format", o.format, "their format (default: found from the content)")
      ->type_name("NAME");
  import->add_option("--sku", o.sku, "name or file of the SKU profile whose limits apply");
  import
      ->add_option("--plan", o.plan,
                   "plan whose limits apply too; limits that no file covers block acceptance")
      ->type_name("FILE");
  import->add_option("--out", o.out, "directory for the record and reports, marked IMPORTED")
      ->type_name("DIR");
  import->footer(kImportExamples);
  return import;
}

CLI::App* addPluginList(CLI::App& app, Arguments& a) {
  CLI::App* plugins =
      app.add_subcommand("plugins", "list plugins, or show the tests, parameters and metrics of one");
  plugins->add_option("name", a.name, "plugin");
  addPlugins(plugins, a.pluginFolders);
  CLI::Option* json = plugins->add_flag("--json", a.json, "as JSON");
  plugins
      ->add_flag("--reference", a.reference,
                 "print one Markdown page: every test, parameter and metric with its meaning")
      ->excludes(json);
  return plugins;
}

PluginsForm pluginsForm(const Arguments& a) {
  if (a.reference) return PluginsForm::kReference;
  return a.json ? PluginsForm::kJson : PluginsForm::kText;
}

CLI::App* addFleet(CLI::App& app, FleetCommandOptions& o) {
  CLI::App* fleet = app.add_subcommand("fleet", "merge node records into one fleet verdict");
  fleet->add_option("run", o.run, "parent of the nodes' run directories")->required()->type_name("DIR");
  fleet->add_option("--expect", o.expect, "file listing the nodes that must have a record")
      ->type_name("FILE");
  fleet->add_flag("--expect-slurm", o.expectSlurm, "expect every node known to Slurm");
  fleet->add_option("--partition", o.partition, "with --expect-slurm: only nodes of this partition")
      ->type_name("NAME");
  fleet->add_option("--plan", o.plan, "required plan (default: the plan of most records)")->type_name("FILE");
  fleet
      ->add_option("--topology", o.topology,
                   "nodes per switch or rack: Slurm's topology.conf, or lines \"NAME: NODES\"")
      ->type_name("FILE");
  fleet
      ->add_option("--acceptance", o.acceptance,
                   "document number, parties and owners for the first page; format: muster report --help")
      ->type_name("FILE");
  fleet
      ->add_option("--requirements", o.requirements,
                   "clauses that each node must meet; format: muster report --help")
      ->type_name("FILE");
  addFleetId(fleet, o.fleetId, "required fleet run ID (default: the ID of most records)");
  addWaivers(fleet, o.waivers);
  fleet->add_option("--out", o.out, "directory for fleet.json and fleet.html (default: RUN)")
      ->type_name("DIR");
  fleet
      ->add_option("--sku", o.profiles,
                   "profile required for nodes of its SKU (default: the profile of most of them)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  fleet
      ->add_option("--record-key", o.recordKey,
                   "the run's key file; records without a valid MAC do not count")
      ->type_name("FILE");
  fleet
      ->add_option("--slurm-run", o.slurmRun,
                   "Slurm run of these records (default: the one they lie in); a record counts only if Slurm "
                   "confirms how its job ended")
      ->type_name("DIR");
  fleet->add_flag("--unconfirmed", o.unconfirmed,
                  "trust the run directory of a Slurm run for jobs that Slurm no longer knows");
  addNodeSkus(fleet, o.nodeSkus);
  addSameMachine(fleet, o.sameMachine);
  fleet->add_flag("--allow-rejudged", o.allowRejudged,
                  "also accept records that `muster judge` re-evaluated");
  fleet->add_flag("--many-runs", o.manyRuns,
                  "accept records of several runs and of any age (default: older ones are stale)");
  fleet->add_flag("--reject-outliers", o.rejectOutliers,
                  "also reject statistical outliers within limits (default: flag only)");
  fleet->footer(kFleetExamples);
  return fleet;
}

int fail(const Error& error) {
  // A list of errors gives the location in each line; a single error is one line.
  printError(fmt::format("muster: {}", error.where.empty() ? error.message : error.text()));
  switch (error.code) {
    case ErrorCode::kUsage:
    case ErrorCode::kNotFound:
    case ErrorCode::kProtocol:
      return kExitUsage;
    default:
      return kExitInternal;
  }
}

int refuse(const std::string& text) {
  printError(text);
  return kExitUsage;
}

int exitCode(const Result<int>& result) {
  return result.ok() ? *result : fail(result.error());
}

int complete(const CLI::App& app, const std::string& shell) {
  if (shell != "bash") {
    printError(
        fmt::format("muster: no completion for \"{}\"; use bash, which also works in zsh after "
                    "`autoload -U +X bashcompinit && bashcompinit`",
                    printable(shell)));
    return kExitUsage;
  }
  printLines(bashCompletion(app));
  return kExitAccepted;
}

Result<int> run(Arguments& a) {
  a.run.view = a.json ? ViewKind::kJson : a.plain ? ViewKind::kPlain : ViewKind::kAuto;
  a.run.noGpuSkip = a.noGpu == "skip";
  if (a.run.nodes > 1 && a.run.scenario.empty())
    return Error{ErrorCode::kUsage, "--nodes applies to simulated nodes; add --simulate SCENARIO", ""};
  if (!a.run.nodeName.empty() && !isPlainName(a.run.nodeName))
    return Error{ErrorCode::kUsage,
                 fmt::format("--node-name \"{}\": expected letters, digits, '-', '_' and '.'",
                             printable(a.run.nodeName, 80)),
                 ""};
  if (!a.nodeNames.empty()) {
    MUSTER_TRY(a.run.nodeNames, expandHostList(a.nodeNames).context("--node-names"));
  }
  if (!a.recordKey.empty()) {
    if (a.run.nodes > 1)
      return Error{
          ErrorCode::kUsage,
          "--record-key holds the key of one node, but --nodes simulates several; remove one of them", ""};
    MUSTER_TRY(a.run.recordKey, readKey(a.recordKey).context("--record-key"));
  }
  if (!a.arrival.empty()) {
    MUSTER_TRY(a.run.arrival, parseDuration(a.arrival).context("--arrival"));
  }
  if (!a.budget.empty()) {
    constexpr DurationRange kBudget = {1, 1e9, "a duration of 1s or more, for example 20m"};
    MUSTER_TRY(a.run.budget, parseDuration(a.budget, kBudget).context("--budget"));
  }
  constexpr DurationRange kLost = {1, 1e9, "a duration of 1s or more, for example 10s"};
  MUSTER_TRY(a.run.lostAfter, parseDuration(a.lostAfter, kLost).context("--lost-after"));
  if (!a.run.out.empty() && !a.run.resume.empty())
    return Error{ErrorCode::kUsage, "give either --out (a new run) or --resume (an interrupted one)", ""};
  return runCommand(a.run);
}

}  // namespace

Result<FleetCommandOptions> parseFleetOptions(std::vector<std::string> arguments) {
  CLI::App app;
  FleetCommandOptions options;
  addFleet(app, options);
  arguments.insert(arguments.begin(), "fleet");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Error& error) {
    return Error{ErrorCode::kUsage, std::string("cannot read the options of `muster fleet`: ") + error.what(),
                 ""};
  }
  return options;
}

int muster(int argc, char** argv) {
  Arguments a;
  a.run.command.assign(argv, argv + argc);
  CLI::App app{
      "Muster: acceptance tests for GPU nodes and clusters. Runs a plan of tests, checks every measurement "
      "against its limit and writes a report."};
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("muster {} ({})", toolVersion(), buildId()));
  app.get_formatter()->column_width(30);

  CLI::App* runApp = addRun(app, a);
  CLI::App* check = addCheck(app, a.check);
  CLI::App* explain = addExplain(app, a.explain);
  CLI::App* init = addInit(app, a.init);
  CLI::App* judge = addJudge(app, a);
  CLI::App* capture = addCapture(app, a.capture);
  CLI::App* report = addReport(app, a.report);
  CLI::App* rma = addRma(app, a.rma);
  CLI::App* compare = addCompare(app, a.compare);
  CLI::App* redact = addRedact(app, a.redact);
  CLI::App* import = addImport(app, a.import);
  CLI::App* plugins = addPluginList(app, a);
  CLI::App* skus = app.add_subcommand("skus", "list SKU profiles, or show the limits and sources of one");
  skus->add_option("name", a.name, "profile");
  addSkus(skus, a.skuFolders);
  CLI::App* baseline = addBaseline(app, a.baseline);
  CLI::App* slurm = addSlurm(app, a.slurm);
  CLI::App* kube = addKube(app, a.kube);
  CLI::App* fleet = addFleet(app, a.fleet);
  const auto history = addHistory(app);
  CLI::App* sign = addSign(app, a.sign);
  CLI::App* verify = addVerify(app, a.verify);
  CLI::App* completion =
      app.add_subcommand("completion", "print a shell completion script: source <(muster completion bash)");
  completion->add_option("shell", a.shell, "bash")->required();
  app.footer(kExamples);  // not before: commands that have no footer of their own would inherit it

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return refuse(usageText(app, error, argc, argv));
  }
  if (const std::string problem = emptyValueText(app); !problem.empty()) return refuse(problem);
  if (runApp->parsed()) {
    a.run.seedGiven = runApp->count("--seed") > 0;
    return exitCode(run(a));
  }
  if (check->parsed() && a.check.plans.empty() && a.check.schema.empty())
    return refuse("muster check: plans is required; see `muster check --help`");
  if (check->parsed()) return exitCode(checkCommand(a.check));
  if (explain->parsed()) return exitCode(explainCommand(a.explain));
  if (init->parsed()) return exitCode(initCommand(a.init));
  if (judge->parsed()) return exitCode(judgeCommand(a.judge));
  if (capture->parsed()) return exitCode(captureCommand(a.capture));
  a.import.command = a.run.command;
  if (import->parsed()) return exitCode(importCommand(a.import));
  if (fleet->parsed()) return exitCode(fleetCommand(a.fleet));
  if (report->parsed()) return exitCode(reportCommand(a.report));
  if (rma->parsed()) return exitCode(rmaCommand(a.rma));
  if (compare->parsed()) return exitCode(compareCommand(a.compare));
  if (redact->parsed()) return exitCode(redactCommand(a.redact));
  if (plugins->parsed()) return exitCode(pluginsCommand(a.name, a.pluginFolders, pluginsForm(a)));
  if (baseline->parsed()) return exitCode(baselineCommand(*baseline, a.baseline));
  if (history->top->parsed()) return exitCode(historyCommand(*history));
  if (sign->parsed()) return exitCode(signCommand(a.sign));
  if (verify->parsed()) return exitCode(verifyCommand(a.verify));
  if (skus->parsed()) return exitCode(skusCommand(a.name, a.skuFolders));
  if (slurm->parsed()) return exitCode(slurmCommand(*slurm, a.slurm));
  if (kube->parsed()) return exitCode(kubeCommand(*kube, a.kube));
  return complete(app, a.shell);
}

}  // namespace muster
