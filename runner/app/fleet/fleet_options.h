// SPDX-License-Identifier: Apache-2.0
// Parsed options of `muster fleet`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

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

CLI::App* addFleet(CLI::App& app, FleetCommandOptions& options);

}  // namespace muster
