// SPDX-License-Identifier: Apache-2.0
// The folder of one run: its lock, the frozen inputs, the journal of finished stages, and the reports at the
// end.
#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/record/record.h"
#include "runner/system/files.h"

namespace muster {

/// One finished stage as the journal keeps it.
struct JournalStage {
  StageRecord stage;
  double virtualEnd = 0;  ///< sim: virtual time after it
  Json extra;             ///< what later stages need of it (the inventory)
};

/// What a run folder holds of an earlier start of the same run.
struct Journal {
  Json run;  ///< the frozen inputs: options, seed, plan and profile texts, boot id
  std::vector<JournalStage> stages;
  std::map<std::string, StageRecord> interrupted;  ///< by name: stages that had failed something by then
  std::string killedIn;  ///< stage that was running when the run was killed; empty: none
  int starts = 0;        ///< how often the run was started or resumed
};

inline constexpr const char* kJournalName = "journal.jsonl";

/// Reads the text of a journal.
Result<Journal> journalFromText(const std::string& text);

/// kUsage where a directory below `path` holds a run, which a fleet would not find below a record in `path`.
/// `next`: what to do.
Status requireNoRunBelow(const std::filesystem::path& path, const std::string& next);

/// A run folder that is held by this process. Layout: journal.jsonl, plan.*, artifacts/, requests/, output/,
/// and at the end record.json, report.html, junit.xml.
class RunFolder {
 public:
  /// Makes the folder (or takes an empty one) for a new run. A folder that already holds a run is refused,
  /// and so is one that cannot be written.
  static Result<RunFolder> create(const std::filesystem::path& path);
  /// Opens the folder of a run that was interrupted; fails while another process holds it.
  static Result<RunFolder> open(const std::filesystem::path& path);
  /// Whether `path` holds a journal with at least its first line.
  static bool holdsRun(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Result<Journal> readJournal() const;
  /// Appends one line and begins to fsync it: the next stage starts meanwhile. What is kept next waits until
  /// that is done, and has its error, too.
  Status appendRun(const Json& frozen);
  Status appendStart();
  /// The stage that runs from now on; empty: none, as the run was interrupted. Not fsynced: a process that is
  /// killed does not lose it, and a power failure is another boot, which is judged.
  Status appendBegun(const std::string& stage);
  Status appendStage(const JournalStage& stage);
  /// A stage that was interrupted, or runs and may be: it is run again, and what it had failed counts as
  /// earlier attempts.
  Status appendInterrupted(const StageRecord& stage);
  /// Begins to write a file of the folder; as above.
  Status keepFile(const std::string& name, std::string content);
  /// Waits until what was begun is on the disk.
  Status settle();
  /// Takes away what a new run has made that could not begin; the folder too, where nothing else is in it.
  void discard();

 private:
  RunFolder(std::filesystem::path path, Fd lock, Fd journal)
      : path_(std::move(path)), lock_(std::move(lock)), journal_(std::move(journal)) {}
  static Result<RunFolder> hold(const std::filesystem::path& named);
  Status append(const Json& line);

  std::filesystem::path path_;
  Fd lock_;
  Fd journal_;
  std::future<Status> syncing_;    ///< ends before journal_ is closed
  std::vector<std::string> made_;  ///< names that were not there before; of a folder that was opened none
};

}  // namespace muster
