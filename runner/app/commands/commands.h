// SPDX-License-Identifier: Apache-2.0
// The subcommands of `muster`. Each returns its exit code, or an Error that main() prints and maps to one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/app/node/options.h"
#include "runner/core/result.h"
#include "runner/dispatch/plugins.h"
#include "runner/record/record.h"

namespace muster {

inline constexpr int kSummaryColumns = 100;  ///< of the summaries that commands print

Result<int> runCommand(const RunOptions& options);

struct CheckOptions {
  std::vector<std::filesystem::path> plans;
  std::vector<std::string> sets;
  bool json = false;  ///< one JSON object, also for an error that stops the command
  std::string
      schema;  ///< prints the JSON Schema of such files and checks nothing: plan, profile, scenario, waivers
  std::vector<std::filesystem::path> pluginFolders;
  std::vector<std::filesystem::path> skuFolders;
};
/// Prints every error of each plan; 2 if there is any.
Result<int> checkCommand(const CheckOptions& options);

struct ExplainOptions {
  std::filesystem::path plan;
  std::vector<std::string> sets;
  std::string sku;  ///< empty: the plan's
  int nodes = 1;
  int devices = 0;         ///< of a node; 0: as many as the profile has
  bool simulated = false;  ///< metrics that only real devices have are left out
  bool json = false;
  std::vector<std::filesystem::path> pluginFolders;
  std::vector<std::filesystem::path> skuFolders;
};
/// Shows the stages, cases, parameters and limits that a plan comes to. Needs no device.
Result<int> explainCommand(const ExplainOptions& options);

struct InitOptions {
  std::filesystem::path folder = ".";
  std::string name = "acceptance";    ///< of the plan
  std::string sku;                    ///< empty: the GPU model of this machine
  std::vector<std::string> min, max;  ///< "METRIC{LABEL=VALUE}=VALUE"
  std::string source = "contract";    ///< of these limits
  std::vector<std::filesystem::path> skuFolders;
};
/// Writes plan.toml and site.toml for this machine; never over a file that is there.
Result<int> initCommand(const InitOptions& options);

struct CaptureOptions {
  std::filesystem::path record;
  std::filesystem::path out = "captured.toml";
  std::string name;  ///< of the scenario; empty: that of the file
};
/// Writes what a record says of its node as a scenario, by which later runs simulate it.
Result<int> captureCommand(const CaptureOptions& options);

struct JudgeOptions {
  std::filesystem::path record;
  std::filesystem::path profile;  ///< a profile file; empty: the record's own expectations again
  std::filesystem::path waivers;  ///< in place of the record's own; empty: those again
  std::filesystem::path out;      ///< where the new record and reports go; empty: only the summary is shown
  bool strict = false;
};
/// What the stored samples of `record`, whose file has the digest `sha256`, come to when they are judged
/// again.
Result<Record> judgedAgain(Record record, const std::string& sha256, const JudgeOptions& options,
                           const Tree& tree);
/// Judges a record's stored samples again, without touching hardware. The record itself is never changed.
Result<int> judgeCommand(const JudgeOptions& options);

struct ImportOptions {
  std::vector<std::string> files;
  std::string format;          ///< empty: found from each file's content
  std::string sku;             ///< a profile's name or file; empty: the plan's, else unknown
  std::filesystem::path plan;  ///< whose limits hold as well; empty: none
  std::filesystem::path out;   ///< where record and reports go; empty: only the summary is shown
  std::vector<std::string> command;
};
/// Judges other tools' results. Returns the exit code of the record that it makes, which no other command
/// takes for a measurement of Muster's.
Result<int> importCommand(const ImportOptions& options);

enum class PluginsForm { kText, kJson, kReference };
/// Lists plugins, their tests, parameters and metrics; `name` empty: one line per plugin. kReference: one
/// Markdown page.
Result<int> pluginsCommand(const std::string& name, const std::vector<std::filesystem::path>& folders,
                           PluginsForm form);

/// Lists the SKU profiles; `name` empty: a line each.
Result<int> skusCommand(const std::string& name, const std::vector<std::filesystem::path>& folders);

struct FleetCommandOptions {
  std::filesystem::path run;     ///< the folder with the nodes' run folders
  std::filesystem::path expect;  ///< file of node names
  bool expectSlurm = false;
  std::string partition;                 ///< with expectSlurm: only its nodes
  std::filesystem::path plan;            ///< the plan that counts; empty: the one that most records hold
  std::string fleetId;                   ///< the run that counts; empty: the one that most records name
  std::filesystem::path topology;        ///< who shares a switch or a rack; empty: not known
  std::filesystem::path acceptance{};    ///< acceptance.toml for the first page; empty: blanks
  std::filesystem::path requirements{};  ///< clauses that each node must show; empty: none
  std::filesystem::path waivers;         ///< known failures that somebody answers for; empty: none
  std::filesystem::path out;             ///< empty: the run folder
  std::vector<std::filesystem::path> profiles;  ///< those that count; empty: what most nodes were judged by
  std::vector<std::string> nodeSkus;            ///< "NODES=SKU"
  std::filesystem::path recordKey;  ///< file of the run's key, which each record must show; empty: none
  std::filesystem::path slurmRun;   ///< run on Slurm that the records must belong to; empty: any
  bool unconfirmed = false;         ///< with slurmRun: what Slurm has forgotten counts as the folder has it
  bool sameMachine = false;
  bool allowRejudged = false;
  bool manyRuns = false;
  bool rejectOutliers = false;
};
/// Puts many nodes' records together into fleet.json and fleet.html. Returns the fleet's exit code.
Result<int> fleetCommand(const FleetCommandOptions& options);
/// The options that these arguments of `muster fleet` come to, as a run on Slurm keeps them.
Result<FleetCommandOptions> parseFleetOptions(std::vector<std::string> arguments);
/// Fails for a topology file that fleetCommand() would refuse.
Status checkTopology(const std::filesystem::path& file);

/// Reads and runs the command line.
int muster(int argc, char** argv);

}  // namespace muster
