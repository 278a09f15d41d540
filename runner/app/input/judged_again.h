// SPDX-License-Identifier: Apache-2.0
// The stored samples of a record, judged again.
#pragma once

#include <filesystem>
#include <string>

#include "runner/app/stage/stage_runner.h"
#include "runner/core/result.h"
#include "runner/dispatch/plugins.h"
#include "runner/record/record.h"
#include "runner/sku/profile.h"

namespace muster {

struct JudgeOptions {
  std::filesystem::path record;
  std::filesystem::path profile;  ///< a profile file; empty: the record's own expectations again
  std::filesystem::path waivers;  ///< in place of the record's own; empty: those again
  std::filesystem::path out;      ///< where the new record and reports go; empty: only the summary is shown
  bool strict = false;
};

/// What the stored samples of `record`, whose file has the digest `sha256`, come to when they are judged
/// again. kTimeout where it has Lua and `call`, from which that is taken, is used up.
Result<Record> judgedAgain(Record record, const std::string& sha256, const JudgeOptions& options,
                           const Tree& tree, PredicateTime& call);

/// kUsage, which names `option`, where a device of the record is not of `profile` though its run did not
/// count it as another one: an H100 would pass by the limits of a slower GPU.
Status checkModel(const Profile& profile, const Record& record, const std::string& option);

}  // namespace muster
