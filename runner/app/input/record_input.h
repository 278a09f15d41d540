// SPDX-License-Identifier: Apache-2.0
// Records on their way from a file into a command: each must hold what its plan asks for.
#pragma once

#include <filesystem>
#include <functional>

#include "reports/fleet/read/stage_check.h"
#include "runner/app/stage/stage_runner.h"
#include "runner/record/record.h"
#include "runner/system/limited_child.h"

namespace muster {

/// kUsage where a stage of the record's plan is missing, or one that its plan does not have is there.
Status checkStages(const Record& record);

/// A record's file: one that a person named, or one found in a directory that they named, which may be
/// somebody else's: below it no link is followed.
struct RecordFile {
  RecordFile(std::filesystem::path named)
      : path(std::move(named)) {}  // NOLINT: a path is a file that was named
  RecordFile(std::filesystem::path found, std::filesystem::path in)
      : path(std::move(found)), directory(std::move(in)) {}

  std::filesystem::path path;
  std::filesystem::path directory;  ///< in which it was found; empty: it was named
};

/// A record that a person named; of a run's folder the file in it is named to them. kUsage where a stage of
/// its plan is missing.
Result<Record> recordAt(const RecordFile& file);

/// What contradicts the record: outcomes or an acceptance that its samples do not come to when they are
/// judged again, an inventory that it measured otherwise, results that an accepted record lacks; empty:
/// nothing. Errors: it cannot be judged again. `call`: what the Lua of all records of this call may still
/// use.
Result<std::string> unsoundness(const Record& record, PredicateTime& call);

/// A record as recordAt() reads it, once nothing contradicts it: else kUsage. It is checked in a child
/// process with limits; kTimeout where the record takes more, or where its Lua does once `call` is used up.
/// The calling process must have one thread.
Result<Record> soundRecordAt(const RecordFile& file, PredicateTime& call);
/// The same of the one record that a command reads.
Result<Record> soundRecordAt(const RecordFile& file);

/// Whether a record that cannot be used is named, and the others are read all the same: it is one of `all`
/// that were found in a folder, and nobody named it.
bool mayLeaveOut(const RecordFile& file, size_t all);
/// The error where none of so many can be used.
Error noSoundRecord(size_t files);

/// kTimeout where that check takes more than its limits, whatever it finds.
Status checkCost(const RecordFile& file);
/// Runs such a check, which itself has `cpuSeconds`: the largest record of a run takes half of that. What it
/// takes beyond is that of its Lua, and charged to `call`, whatever its end.
ChildEnd checkInChild(PredicateTime& call, const std::function<std::string()>& work, int cpuSeconds = 30);

/// kUsage where the file at `path` was another one when its digest was `sha256`.
Status checkUnchanged(const Record& record, const std::string& sha256, const std::filesystem::path& path);

/// The record files of a run folder or a folder of runs, or the file itself.
Result<std::vector<RecordFile>> recordFilesAt(const std::filesystem::path& path);

/// Checks the doubtful records below `run` as soundRecordAt() does, and moves those that something
/// contradicts to the quarantined. The calling process must have one thread.
void setAsideUnsound(fleet::FleetRecords& records, const std::filesystem::path& run);

/// Moves the records that lack a stage of their plan to the quarantined. Once the plans took `planSeconds` of
/// CPU time together (those in Lua are programs), the records of the other plans are set aside too. The plan
/// with the digest `wantedPlan` is looked at first, then those of the most nodes. The calling process must
/// have one thread.
void setAsideIncomplete(fleet::FleetRecords& records, const std::string& wantedPlan = "",
                        double planSeconds = 6);

}  // namespace muster
