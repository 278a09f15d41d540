// SPDX-License-Identifier: Apache-2.0
// Programs that an operator lets plans run, and how one runs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plugins/exec/params.h"

namespace muster::exec {

/// The program, if the operator lets plans run it: it lies in one of the directories that the environment's
/// MUSTER_EXEC_DIR lists (separated by ':'), and nobody else could replace it. Whoever hands over a plan does
/// not choose which programs run.
Result<std::string> allowedProgram(const std::string& program);

/// "NAME=VALUE" of the variables in `names` that are set here, beside a fixed PATH. kUsage for names that are
/// none, and for those of Muster itself, which may hold keys.
Result<std::vector<std::string>> allowedEnvironment(const std::vector<std::string>& names);

/// How a program ended, and what it printed until then.
struct ProgramRun {
  Status status;  ///< not ok: it did not end by itself with the right code, in time and within bounds
  std::string out, err;
  double seconds = 0;
};

/// Runs it in `folder` to its end, at most for its time limit and until `cancelled`.
ProgramRun runToEnd(const CommandParams& params, const std::string& program,
                    const std::vector<std::string>& environment, const std::filesystem::path& folder,
                    const std::function<bool()>& cancelled);

}  // namespace muster::exec
