// SPDX-License-Identifier: Apache-2.0
// What a command does with a record that it made: its files, its summary, its exit code.
#pragma once

#include <filesystem>

#include "runner/record/record.h"

namespace muster {

/// Writes the record and its reports into `out`, unless that is empty, prints the summary and returns the
/// exit code. kUsage where `out` holds a record already, or one lies below it.
Result<int> showRecord(const Record& record, const std::filesystem::path& out,
                       const std::filesystem::path& templates);

}  // namespace muster
