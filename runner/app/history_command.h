// SPDX-License-Identifier: Apache-2.0
// `muster history`: every run kept, and how a node changes over its runs.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster {

struct HistoryOptions {
  std::filesystem::path database;              ///< empty: $MUSTER_HISTORY, or in the user's state folder
  std::vector<std::filesystem::path> records;  ///< add: run folders, folders of runs, record files
  std::vector<std::string> runs;               ///< show, compare
  std::string node;
  size_t newest = 0;
  bool json = false;
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
};

std::unique_ptr<HistoryCommands> addHistory(CLI::App& app);

/// Runs the subcommand that was parsed. add: 3 if a record could not be read. trend: 1 if a node got worse.
/// compare: 1 if a figure got worse.
Result<int> historyCommand(const HistoryCommands& commands);

}  // namespace muster
