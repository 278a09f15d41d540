// SPDX-License-Identifier: Apache-2.0
// Creates, locks and reopens run directories, and appends to the journal.
#include "runner/app/node/run_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runner/core/text.h"
#include "runner/launcher/launcher_variables.h"
#include "runner/system/run_store.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kJournalLimit = 1ull << 30;
/// What a run makes in its folder before its first stage.
constexpr const char* kFirstMade[] = {kJournalName, ".lock", "artifacts", "requests", "output"};

Error ioError(const fs::path& path, const std::string& what, const std::string& next) {
  return Error{ErrorCode::kUsage, what + ": " + errnoText(errno) + "; " + next, path.string()};
}

Result<JournalStage> journalStageFromJson(const Json& line, const std::string& path) {
  JournalStage entry;
  JsonReader reader(line, path);
  reader.read("virtual_end", entry.virtualEnd);
  const Json* stage = reader.object("stage");
  MUSTER_CHECK_OK(reader.status());
  MUSTER_TRY(entry.stage, stageRecordFromJson(*stage, path + ".stage"));
  if (line.contains("extra")) entry.extra = line["extra"];
  return entry;
}

/// Stages in a journal are in the form of a record's.
Status checkVersion(const Json& run, const std::string& where) {
  int schema = 1;
  JsonReader reader(run, where);
  reader.optional("record_schema", schema);
  if (reader.ok() && schema != kRecordSchema)
    return Error{ErrorCode::kUsage,
                 "another version of Muster started this run (record schema " + std::to_string(schema) +
                     ", here " + std::to_string(kRecordSchema) +
                     "): resume it with that one, or start a new run with --out",
                 where};
  return reader.status();
}

/// A resumed run asks for these by their type, wherever it needs them.
Status checkFrozen(const Json& run, const std::string& where) {
  JsonReader reader(run, where);
  std::string text;
  int rank = 0, count = 1;
  for (const char* key : {"run_id", "boot_id", "node", "build", "plan_path", "plan_sha256", "plan_text",
                          "sku", "scenario", "waivers_path", "waivers_text", "fleet_id"})
    reader.optional(key, text);
  reader.optional("node_rank", rank);
  reader.optional("node_count", count);
  MUSTER_CHECK_OK(reader.status());
  if (count >= 1 && count <= kMaxNodes && rank >= 0 && rank < count) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("node_rank {} of {} nodes: expected a number below theirs, of at most {} nodes",
                           rank, count, kMaxNodes),
               where};
}

/// Cuts off a last line that a crash left without its end, so that the journal can go on: that stage is run
/// again.
Status cutTornLine(int fd, const fs::path& journal) {
  MUSTER_TRY(const std::string text, readFile(journal, kJournalLimit));
  const size_t newline = text.rfind('\n');
  const size_t keep = newline == std::string::npos ? 0 : newline + 1;
  if (keep != text.size() && ftruncate(fd, static_cast<off_t>(keep)) != 0)
    return ioError(journal, "cannot repair the journal", "check the file system");
  return {};
}

/// A run in a directory below this one; empty: there is none.
fs::path runBelow(const fs::path& path) {
  constexpr int kDeepest = 3;  // records/cluster/NODE/node-0001
  std::error_code error;
  fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at.depth() >= kDeepest) at.disable_recursion_pending();
    std::error_code ignored;
    const bool isRun = RunFolder::holdsRun(at->path()) || fs::exists(at->path() / "record.json", ignored);
    if (at->is_directory(ignored) && isRun) return at->path();
  }
  return {};
}

}  // namespace

Status requireNoRunBelow(const fs::path& path, const std::string& next) {
  const fs::path other = runBelow(path);
  if (other.empty()) return {};
  return Error{ErrorCode::kUsage,
               "this directory holds the runs of other nodes, such as " +
                   printable(other.lexically_relative(path).string(), 200) + "; " + next,
               path.string()};
}

bool RunFolder::holdsRun(const fs::path& path) {
  std::error_code error;
  return fs::file_size(path / kJournalName, error) > 0 && !error;
}

Result<RunFolder> RunFolder::hold(const fs::path& named) {
  MUSTER_TRY(const fs::path path, ownFolder(named));
  MUSTER_TRY(Fd lock, lockRun(path));
  MUSTER_TRY(Fd journal, openOwnFile(path / kJournalName, O_WRONLY | O_APPEND));
  MUSTER_CHECK_OK(cutTornLine(journal.get(), path / kJournalName));
  return RunFolder(path, std::move(lock), std::move(journal));
}

Result<RunFolder> RunFolder::create(const fs::path& named) {
  std::error_code error;
  const bool isNew = !fs::exists(named, error);
  MUSTER_TRY(const fs::path path, makeOutputFolder(named, "--out"));
  if (holdsRun(path) || fs::exists(path / "record.json", error))
    return Error{ErrorCode::kUsage,
                 "this directory already holds a run; choose another --out, or continue with --resume if "
                 "that run was interrupted",
                 path.string()};
  if (!isNew)
    MUSTER_CHECK_OK(
        requireNoRunBelow(path,
                          "to run as one of them, give --nnodes and --node-rank, or start as the others were "
                          "started; else choose another --out"));
  std::vector<std::string> missing;
  for (const char* name : kFirstMade)
    if (!fs::exists(fs::symlink_status(path / name, error))) missing.emplace_back(name);
  auto folder = hold(path);
  if (!folder.ok() && isNew) fs::remove(path, error);  // nothing is in it
  if (!folder.ok()) return folder;
  folder->made_ = std::move(missing);
  return folder;
}

Result<RunFolder> RunFolder::open(const fs::path& path) {
  if (!holdsRun(path))
    return Error{ErrorCode::kUsage, "no run to resume in this directory (no journal); start one with --out",
                 path.string()};
  return hold(path);
}

Result<Journal> journalFromText(const std::string& text) {
  Journal journal;
  size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    const std::string where = "journal.jsonl:" + std::to_string(number);
    MUSTER_TRY(const Json line, parseJson(text.substr(begin, end - begin)).context(where));
    begin = end + 1;
    std::string type;
    JsonReader reader(line, where);
    reader.read("type", type);
    MUSTER_CHECK_OK(reader.status());
    if (type == "run") {
      MUSTER_CHECK_OK(checkVersion(line, where));
      MUSTER_CHECK_OK(checkFrozen(line, where));
      journal.run = line;
    }
    if (type == "start") ++journal.starts;
    if (type == "begun") {
      reader.read("stage", journal.killedIn);
      MUSTER_CHECK_OK(reader.status());
    }
    if (type == "interrupted") {
      const Json* stage = reader.object("stage");
      MUSTER_CHECK_OK(reader.status());
      MUSTER_TRY(StageRecord record, stageRecordFromJson(*stage, where + ".stage"));
      journal.interrupted.insert_or_assign(record.name, std::move(record));
    }
    if (type != "stage") continue;
    MUSTER_TRY(JournalStage stage, journalStageFromJson(line, where));
    if (stage.stage.name == journal.killedIn) journal.killedIn.clear();
    journal.stages.push_back(std::move(stage));
  }
  if (!journal.run.is_object())
    return Error{ErrorCode::kUsage, "the journal has no complete first line; start a new run with --out",
                 kJournalName};
  return journal;
}

Result<Journal> RunFolder::readJournal() const {
  MUSTER_TRY(const std::string text, readFile(path_ / kJournalName, kJournalLimit));
  return journalFromText(text);
}

void RunFolder::discard() {
  static_cast<void>(settle());
  std::error_code ignored;  // what cannot be removed is seen
  for (const std::string& name : made_) fs::remove_all(path_ / name, ignored);
  fs::remove(path_, ignored);
}

Status RunFolder::settle() {
  return syncing_.valid() ? syncing_.get() : Status();
}

Status RunFolder::append(const Json& line) {
  MUSTER_CHECK_OK(settle());
  const fs::path name = path_ / kJournalName;
  const std::string text = dumpJson(line) + "\n";
  const ssize_t written = ::write(journal_.get(), text.data(), text.size());
  // What remains, at once, and the reason.
  if (written != static_cast<ssize_t>(text.size()))
    return appendAndSync(journal_.get(), text.substr(static_cast<size_t>(std::max<ssize_t>(written, 0))),
                         name);
  // An empty append is an fsync.
  syncing_ = std::async(std::launch::async, appendAndSync, journal_.get(), std::string_view(), name);
  return {};
}

Status RunFolder::keepFile(const std::string& name, std::string content) {
  std::error_code error;
  if (!made_.empty() && !fs::exists(path_ / name, error)) made_.push_back(name);
  MUSTER_CHECK_OK(settle());
  syncing_ = std::async(std::launch::async, [path = path_ / name, text = std::move(content)] {
    return writeFileAtomically(path, text);
  });
  return {};
}

Status RunFolder::appendRun(const Json& frozen) {
  Json line = frozen;
  line["type"] = "run";
  line["record_schema"] = kRecordSchema;
  return append(line);
}

Status RunFolder::appendStart() {
  return append({{"type", "start"}});
}

Status RunFolder::appendBegun(const std::string& stage) {
  const std::string text = dumpJson({{"type", "begun"}, {"stage", stage}}) + "\n";
  if (::write(journal_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return Error{ErrorCode::kIo, "cannot be written", (path_ / kJournalName).string()};
}

Status RunFolder::appendStage(const JournalStage& stage) {
  Json line = {{"type", "stage"}, {"virtual_end", stage.virtualEnd}, {"stage", toJson(stage.stage)}};
  if (!stage.extra.is_null()) line["extra"] = stage.extra;
  return append(line);
}

Status RunFolder::appendInterrupted(const StageRecord& stage) {
  return append({{"type", "interrupted"}, {"stage", toJson(stage)}});
}

}  // namespace muster
