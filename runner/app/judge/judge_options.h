// SPDX-License-Identifier: Apache-2.0
// Measurements that exist are judged: `muster judge` and `import`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/app/input/judged_again.h"
#include "runner/core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

/// Judges a record's stored samples again, without touching hardware. The record itself is never changed.
Result<int> judgeCommand(const JudgeOptions& options);

struct ImportOptions {
  std::vector<std::string> files;
  std::string format;          ///< empty: found from each file's content
  std::string sku;             ///< a profile's name or file; empty: the plan's, else unknown
  std::filesystem::path plan;  ///< whose limits hold as well; empty: none
  std::filesystem::path out;   ///< where record and reports go; empty: only the summary is shown
  std::vector<std::string> command;
};
/// Judges other tools' results. Returns the exit code of the record that it makes, which no other command
/// takes for a measurement of Muster's.
Result<int> importCommand(const ImportOptions& options);

CLI::App* addJudge(CLI::App& app, JudgeOptions& options);
CLI::App* addImport(CLI::App& app, ImportOptions& options);

}  // namespace muster
