// SPDX-License-Identifier: Apache-2.0
// The jobs' scripts, rendered from templates/slurm.
#pragma once

#include <filesystem>
#include <string>

#include "runner/core/result.h"
#include "runner/core/shell.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {

/// What `muster slurm fill` exits with after it submitted more jobs: the fleet job that follows them reports.
constexpr int kExitAgain = 75;

/// Also quotes the #SBATCH lines of a script.
using muster::shellQuote;

struct Script {
  std::string name;  ///< "node.sbatch"
  std::string text;
};

/// Every script of a run whose folder is `folder`. Each value from outside is quoted; kUsage for those that
/// no quoting can carry (line breaks, NUL) and for mounts that the container's runtime cannot be told.
Result<std::vector<Script>> renderScripts(const Submission& submission, const std::filesystem::path& folder,
                                          const std::filesystem::path& templates);

/// Seconds that a hook leaves between its own limit and Slurm's.
constexpr int kHookMargin = 10;

/// A program that Slurm itself calls on a node: "health_check", "prolog" or "epilog".
struct Hook {
  std::string kind;
  std::string muster;     ///< the executable, as nodes see it
  std::string plan;       ///< as nodes see it
  std::string folder;     ///< on the node: the last two results of each kind
  std::string slurmBin;   ///< where scontrol and sinfo are
  std::string slurmConf;  ///< where slurm.conf is, if not where Slurm looks by itself
  int seconds = 0;        ///< time after which the plan is ended
};

/// The hook's script; each value is quoted.
Result<std::string> renderHook(const std::filesystem::path& templates, const Hook& hook);

}  // namespace muster::slurm
