// SPDX-License-Identifier: Apache-2.0
// The stored samples of a record, judged again.
#pragma once

#include <filesystem>
#include <string>

#include "runner/core/result.h"
#include "runner/dispatch/plugins.h"
#include "runner/record/record.h"

namespace muster {

struct JudgeOptions {
  std::filesystem::path record;
  std::filesystem::path profile;  ///< a profile file; empty: the record's own expectations again
  std::filesystem::path waivers;  ///< in place of the record's own; empty: those again
  std::filesystem::path out;      ///< where the new record and reports go; empty: only the summary is shown
  bool strict = false;
};
/// What the stored samples of `record`, whose file has the digest `sha256`, come to when they are judged
/// again.
Result<Record> judgedAgain(Record record, const std::string& sha256, const JudgeOptions& options,
                           const Tree& tree);

}  // namespace muster
