// SPDX-License-Identifier: Apache-2.0
// Runs a scheduler's command line tool to its end: no shell, bounded output, a deadline.
#pragma once

#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::slurm {

struct CommandResult {
  int exitCode = -1;  ///< -1 when a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
};

/// What a program gets beside its arguments.
struct CommandSetting {
  std::vector<std::string> without = {};  ///< variables whose name begins with one of these are left out
  std::vector<std::string> with = {};     ///< "NAME=VALUE", beside the environment
  std::string input = {};                 ///< its standard input
};

/// Runs `argv` (argv[0] is looked up in PATH). kNotFound when there is no such program, kTimeout when it did
/// not end within `timeout` seconds (it is killed then), kProtocol when it wrote more than 256 MiB.
Result<CommandResult> runCommand(const std::vector<std::string>& argv, double timeout,
                                 const CommandSetting& setting = {});

}  // namespace muster::slurm
