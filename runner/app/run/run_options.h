// SPDX-License-Identifier: Apache-2.0
// Parsed options of `muster run`.
#pragma once

#include <filesystem>
#include <string>

#include "runner/app/node/options.h"
#include "runner/core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

/// The command line of `muster run` as it was given.
struct RunArguments {
  RunOptions run;
  std::string noGpu = "fail";
  std::string arrival;
  std::string budget;
  std::string nodeNames;
  std::filesystem::path recordKey;
  std::string lostAfter = "10s";
  bool json = false;
  bool plain = false;
};
CLI::App* addRun(CLI::App& app, RunArguments& arguments);

/// Options that contradict each other, or cannot be read, are usage errors.
Result<RunOptions> runOptionsFrom(RunArguments arguments);

/// Runs a plan on this node. Returns the exit code of its record.
Result<int> runCommand(const RunOptions& options);

}  // namespace muster
