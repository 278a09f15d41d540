// SPDX-License-Identifier: Apache-2.0
// `muster history`: every run kept, how a node changes over its runs, and acceptance after a replacement.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "reports/history/prune.h"
#include "reports/history/store/store.h"
#include "runner/core/result.h"

namespace muster {

struct HistoryOptions {
  std::filesystem::path database;              ///< empty: $MUSTER_HISTORY, or in the user's state folder
  std::vector<std::filesystem::path> records;  ///< add: run folders, folders of runs, record files
  std::vector<std::string> runs;               ///< show, compare
  std::string node;
  size_t newest = 0;
  bool json = false;
  // delta
  std::filesystem::path since;                ///< folder of the accepted fleet; empty: the history's last one
  std::vector<std::filesystem::path> reruns;  ///< runs after the replacement
  std::vector<std::filesystem::path> surveys;  ///< runs of any plan, which say what parts nodes have now
  std::filesystem::path out;
  std::filesystem::path waivers;  ///< of the fleet; empty: none
  bool rejectOutliers = false;
  bool unconfirmed = false;  ///< add, delta: what Slurm has forgotten counts as the run's folder has it
  history::PruneRule rule;
  bool apply = false;  ///< prune: remove; else only say what would be removed
};

/// The subcommands with their options and help.
struct HistoryCommands {
  HistoryOptions options;
  CLI::App* top = nullptr;
  CLI::App* add = nullptr;
  CLI::App* list = nullptr;
  CLI::App* show = nullptr;
  CLI::App* trend = nullptr;
  CLI::App* compare = nullptr;
  CLI::App* fleets = nullptr;
  CLI::App* delta = nullptr;
  CLI::App* prune = nullptr;
};

std::unique_ptr<HistoryCommands> addHistory(CLI::App& app);

/// Runs the subcommand that was parsed. add: 3 if a record could not be read. trend: 1 if a node got worse.
/// compare: 1 if a figure got worse.
Result<int> historyCommand(const HistoryCommands& commands);

/// Opens the history that the options name.
Result<history::Store> openHistory(const HistoryOptions& options, history::Access access);

/// After a replacement: which nodes must run again (3), or the fleet with the new records in place of theirs,
/// with that fleet's exit code. Errors name what does not belong together.
Result<int> historyDelta(const HistoryOptions& options);

/// Thins old runs by the rule: says what it keeps and removes, and with --apply does it.
Result<int> historyPrune(const HistoryOptions& options);

}  // namespace muster
