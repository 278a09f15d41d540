// SPDX-License-Identifier: Apache-2.0
// Runs that have a journal but no record: they were interrupted, or are still running.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::fleet {

/// The file by which a run folder is known before it holds a record.
inline constexpr const char* kJournalName = "journal.jsonl";

/// What the journal of a run without a record says.
struct InterruptedRun {
  std::string path;  ///< of the run's folder, relative to the folder that was read
  std::string node;  ///< a plain name
  std::string planName;
  std::string planSha256;
  std::vector<std::string> overrides;  ///< the --set arguments
  std::string fleetId;
  int nodeRank = 0;
  int nodeCount = 1;
  bool simulated = false;
  double started = 0;                   ///< seconds since 1970
  size_t stages = 0;                    ///< that it has finished
  std::optional<bool> running = false;  ///< a process holds its lock; nothing where only its user may ask
  std::string goOnWith;                 ///< the command that resumes it on its node
};

/// Reads the first line of the journal in `folder` and counts its stages; `shown` is the folder's path for
/// people, and `directory` as RecordReader::read() has it. Errors are reasons for quarantine: a truncated
/// first line, a missing node name.
Result<InterruptedRun> readInterruptedRun(const std::filesystem::path& folder, const std::string& shown,
                                          const std::filesystem::path& directory = {});

}  // namespace muster::fleet
