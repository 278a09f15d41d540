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

/// Runs `argv` (argv[0] is looked up in PATH) without input. Variables of the environment whose name begins
/// with one of `without` are left out. kNotFound when there is no such program, kTimeout when it did not end
/// within `timeout` seconds (it is killed then), kProtocol when it wrote more than 256 MiB.
Result<CommandResult> runCommand(const std::vector<std::string>& argv, double timeout,
                                 const std::vector<std::string>& without = {});

}  // namespace muster::slurm
