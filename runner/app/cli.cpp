// SPDX-License-Identifier: Apache-2.0
// The command line of `muster`: its commands, help by example, exit codes.
#include "runner/app/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <memory>

#include "runner/app/attest/attest_options.h"
#include "runner/app/baseline/baseline_options.h"
#include "runner/app/completion.h"
#include "runner/app/fleet/fleet_options.h"
#include "runner/app/history/compare_command.h"
#include "runner/app/history/history_command.h"
#include "runner/app/judge/judge_options.h"
#include "runner/app/kube/kube_options.h"
#include "runner/app/prepare/prepare_options.h"
#include "runner/app/process/print_error.h"
#include "runner/app/report/report_options.h"
#include "runner/app/run/run_options.h"
#include "runner/app/slurm/slurm_options.h"
#include "runner/app/usage_error.h"
#include "runner/core/build_info.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"

namespace muster {
namespace {

constexpr const char* kExamples = R"(
Examples:
  muster run plans/quickstart.toml                     test this machine's CPU, half a minute
  muster run plans/node-quick.toml --out /data/n17     test this node's GPUs, five minutes
  muster run plans/node-quick.toml --simulate plans/scenarios/h100x8-one-slow-gpu.toml
  muster run --resume /data/n17                        resume after a crash or Ctrl-C
  muster init acceptance                               write a plan for this machine
  muster check my-plan.lua                             list all errors with their locations
  muster explain plans/node-full.toml --sku h200-sxm   show its stages and limits
  muster judge record.json --sku my-sku.toml           re-evaluate stored samples
  muster baseline learn runs/first -o ours.toml        learn a SKU profile from this fleet
  muster slurm submit plans/node-full.toml --nodes all --out /shared/may    every node of a Slurm cluster
  muster k8s submit plans/node-full.toml --nodes all --image REF --out may  every GPU node of a Kubernetes cluster
  muster fleet runs/monday --expect nodes.txt          merge all nodes into one fleet verdict
  muster history add runs/monday                       add these runs to the history
  muster compare runs/before runs/after                what differs by more than the noise
  muster sign runs/monday --key supplier.key           sign a run or fleet directory
  muster verify runs/monday --key supplier.key.pub     verify it without trust in the signer
  muster plugins compute                               show a plugin's tests and metrics

`muster COMMAND --help` describes each command.

Exit codes: 0 accepted, 1 rejected, 2 invalid usage, plan or profile, 3 incomplete, 4 internal error,
5 no GPU and --no-gpu=skip, 130 interrupted before anything failed.)";

/// A command, and what it does once its options are parsed.
struct Command {
  CLI::App* app;
  std::function<Result<int>()> perform;
};

template <class Options>
using Add = CLI::App* (*)(CLI::App&, Options&);

/// A command whose options are one struct, which lives as long as the command.
template <class Options>
Command command(CLI::App& app, Add<Options> add, Result<int> (*perform)(const Options&)) {
  const auto options = std::make_shared<Options>();
  return {add(app, *options), [=] { return perform(*options); }};
}

/// The same of a command that has commands.
template <class Options>
Command group(CLI::App& app, Add<Options> add, Result<int> (*perform)(const CLI::App&, Options&)) {
  const auto options = std::make_shared<Options>();
  CLI::App* added = add(app, *options);
  return {added, [=] { return perform(*added, *options); }};
}

Command runWith(CLI::App& app, const std::vector<std::string>& words) {
  const auto arguments = std::make_shared<RunArguments>();
  arguments->run.command = words;
  return {addRun(app, *arguments), [=]() -> Result<int> {
            MUSTER_TRY(const RunOptions options, runOptionsFrom(*arguments));
            return runCommand(options);
          }};
}

Command importWith(CLI::App& app, const std::vector<std::string>& words) {
  const auto options = std::make_shared<ImportOptions>();
  options->command = words;
  return {addImport(app, *options), [=] { return importCommand(*options); }};
}

Command historyCommands(CLI::App& app) {
  const std::shared_ptr<HistoryCommands> commands = addHistory(app);
  return {commands->top, [=] { return historyCommand(*commands); }};
}

Result<int> complete(const CLI::App& app, const std::string& shell) {
  if (shell != "bash")
    return Error{ErrorCode::kUsage,
                 fmt::format("no completion for \"{}\"; use bash, which also works in zsh after `autoload -U "
                             "+X bashcompinit && bashcompinit`",
                             printable(shell)),
                 ""};
  printLines(bashCompletion(app));
  return kExitAccepted;
}

Command completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* added =
      app.add_subcommand("completion", "print a shell completion script: source <(muster completion bash)");
  added->add_option("shell", *shell, "bash")->required();
  return {added, [&app, shell] { return complete(app, *shell); }};
}

/// In the order in which --help lists them.
std::vector<Command> allCommands(CLI::App& app, const std::vector<std::string>& words) {
  return {runWith(app, words),
          command(app, addCheck, checkCommand),
          command(app, addExplain, explainCommand),
          command(app, addInit, initCommand),
          command(app, addJudge, judgeCommand),
          command(app, addCapture, captureCommand),
          command(app, addReport, reportCommand),
          command(app, addRma, rmaCommand),
          command(app, addCompare, compareCommand),
          command(app, addRedact, redactCommand),
          importWith(app, words),
          command(app, addPlugins, pluginsCommand),
          command(app, addSkus, skusCommand),
          group(app, addBaseline, baselineCommand),
          group(app, addSlurm, slurmCommand),
          group(app, addKube, kubeCommand),
          command(app, addFleet, fleetCommand),
          historyCommands(app),
          command(app, addSign, signCommand),
          command(app, addVerify, verifyCommand),
          completion(app)};
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

}  // namespace

int muster(int argc, char** argv) {
  CLI::App app{
      "Muster: acceptance tests for GPU nodes and clusters. Runs a plan of tests, checks every measurement "
      "against its limit and writes a report."};
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("muster {} ({})", toolVersion(), buildId()));
  app.get_formatter()->column_width(30);
  const std::vector<Command> commands = allCommands(app, {argv, argv + argc});
  app.footer(kExamples);  // not before: commands that have no footer of their own would inherit it

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return refuse(usageText(app, error, argc, argv));
  }
  if (const std::string problem = emptyValueText(app); !problem.empty()) return refuse(problem);
  const auto given = std::find_if(commands.begin(), commands.end(),
                                  [](const Command& command) { return command.app->parsed(); });
  const Result<int> code = given->perform();
  return code.ok() ? *code : fail(code.error());
}

}  // namespace muster
