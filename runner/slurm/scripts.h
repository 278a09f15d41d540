// SPDX-License-Identifier: Apache-2.0
// The jobs' scripts, rendered from templates/slurm.
#pragma once

#include <filesystem>
#include <string>

#include "runner/core/result.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {

/// What `muster slurm fill` exits with after it submitted more jobs: the fleet job that follows them reports.
constexpr int kExitAgain = 75;

/// `text` as one word for a shell and for the #SBATCH lines of a script.
std::string shellQuote(const std::string& text);

struct Script {
  std::string name;  ///< "node.sbatch"
  std::string text;
};

/// Every script of a run whose folder is `folder`. Each value from outside is quoted; kUsage for those that
/// no quoting can carry (line breaks, NUL).
Result<std::vector<Script>> renderScripts(const Submission& submission, const std::filesystem::path& folder,
                                          const std::filesystem::path& templates);

/// One template with these values, for scripts that belong to no run.
Result<std::string> renderTemplate(const std::filesystem::path& file,
                                   const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace muster::slurm
