// SPDX-License-Identifier: Apache-2.0
// `muster compare`: without a history, from the records alone.
#pragma once

#include <filesystem>

#include "runner/core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

struct CompareOptions {
  std::filesystem::path before;  ///< a record, or a folder with runs
  std::filesystem::path after;
  bool json = false;
};

/// 1 if a metric got worse or an accepted node is missing or no longer accepted, else 0.
Result<int> compareCommand(const CompareOptions& options);
CLI::App* addCompare(CLI::App& app, CompareOptions& options);

}  // namespace muster
