// SPDX-License-Identifier: Apache-2.0
// Parsed options of `muster slurm`, and its subcommands.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/app/submit/submit_input.h"
#include "runner/core/result.h"
#include "runner/slurm/submission.h"

namespace CLI {
class App;
}

namespace muster {

/// SubmitInput is what `submit` runs.
struct SlurmOptions : SubmitInput {
  std::string nodes;  ///< a host list, or "all"
  slurm::JobSettings jobs;
  std::string runtime = "auto";
  std::string time;             ///< a duration; empty: what the plan's timeouts come to
  std::string gapWait = "30m";  ///< a duration
  bool print = false;
  bool wait = false;
  // the others
  std::filesystem::path run;
  bool rejectedToo = false;
  bool apply = false;
  bool dryRun = false;
  bool unconfirmed = false;
  std::string olderThan;
  std::string hookTime = "45s";  ///< a duration
  std::string hookFolder = "/var/lib/muster";
};

/// Adds `slurm` with its subcommands to the command line.
CLI::App* addSlurm(CLI::App& app, SlurmOptions& options);

/// Runs the subcommand that was given.
Result<int> slurmCommand(const CLI::App& slurm, SlurmOptions& options);

Result<int> slurmSubmit(SlurmOptions& options);
Result<int> slurmStatus(const SlurmOptions& options);
Result<int> slurmResume(const SlurmOptions& options);
Result<int> slurmFill(const SlurmOptions& options);
Result<int> slurmDrain(const SlurmOptions& options);
Result<int> slurmUndrain(const SlurmOptions& options);
/// Writes the programs that Slurm calls on its nodes: HealthCheckProgram, Prolog, Epilog.
Result<int> slurmHooks(const SlurmOptions& options);
Result<int> slurmClean(const SlurmOptions& options);

/// Follows the run until its fleet report is there; returns the fleet's exit code.
Result<int> slurmWait(const slurm::RunStore& run);

}  // namespace muster
