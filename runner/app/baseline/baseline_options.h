// SPDX-License-Identifier: Apache-2.0
// Parsed options of `muster baseline`, and its subcommands.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/sku/learn.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

struct BaselineOptions {
  // learn
  std::filesystem::path run;   ///< folder with the nodes' records
  std::filesystem::path out;   ///< the profile to write
  std::filesystem::path base;  ///< profile to take over from; empty: the one in the records
  std::string name;            ///< of the new profile; empty: the base's
  std::string falseRejects = "0.05%";
  std::string confidence = "95%";
  LearnOptions learn;
  bool correct = false;  ///< correct the limits of the base by few nodes, instead of learning by many
  std::string tolerance = "10%";
  bool force = false;
  bool unconfirmed = false;  ///< what Slurm has forgotten counts as the run's folder has it
  bool allowSimulated = false;
  // diff
  std::filesystem::path before;
  std::filesystem::path after;
  std::vector<std::filesystem::path> pluginFolders;
};

/// Adds `baseline` with its subcommands to the command line.
CLI::App* addBaseline(CLI::App& app, BaselineOptions& options);

/// Runs the subcommand that was given.
Result<int> baselineCommand(const CLI::App& baseline, BaselineOptions& options);

/// Learns a profile from the records under a folder. 0: it is written; an Error (exit 2) is a refusal.
Result<int> baselineLearn(BaselineOptions& options);

/// Says what changed between two profiles.
Result<int> baselineDiff(const BaselineOptions& options);

}  // namespace muster
