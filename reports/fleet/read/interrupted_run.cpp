// SPDX-License-Identifier: Apache-2.0
// Reads what the journal of an interrupted run says.
#include "reports/fleet/read/interrupted_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster::fleet {
namespace fs = std::filesystem;
namespace {

/// The first line holds the texts of plan and waivers.
constexpr size_t kLongestLine = 8u << 20;
/// Each further line is a start or a stage; its type stands first.
constexpr std::string_view kStageLine = "{\"type\":\"stage\"";

Error unusable(const std::string& why) {
  return {ErrorCode::kProtocol, "no record, and " + why + "; rerun the plan on its node", ""};
}

/// Whether a process has the run's lock, as far as the file system's locks reach; nothing where only its user
/// may ask. `directory`: as RecordReader::read() has it.
std::optional<bool> isHeld(const fs::path& folder, const fs::path& directory) {
  const auto lock = openFound(folder / ".lock", directory);
  if (!lock.ok() && lock.error().code == ErrorCode::kUsage) return std::nullopt;
  return lock.ok() && flock(lock->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// A real run is resumed on its node only, which the scheduler may call otherwise than it calls itself. Each
/// of several has a folder of its own inside the one that all of them are given.
std::string commandToGoOn(const InterruptedRun& run, const fs::path& folder) {
  const bool together = run.nodeCount > 1 && !run.simulated;
  std::vector<std::string> command = {"muster", "run", "--resume",
                                      (together ? folder.parent_path() : folder).string()};
  if (!run.simulated) command.insert(command.end(), {"--node-name", run.node});
  if (together)
    command.insert(command.end(),
                   {"--nnodes", std::to_string(run.nodeCount), "--node-rank", std::to_string(run.nodeRank)});
  return shellCommand(command);
}

Status readFrozen(const std::string& line, InterruptedRun& run) {
  MUSTER_TRY(const Json json, parseJson(line));
  std::string scenario, plan;
  JsonReader reader(json, "journal.jsonl:1");
  reader.read("node", run.node);
  reader.read("plan_sha256", run.planSha256);
  reader.read("plan_path", plan);
  reader.read("sets", run.overrides);
  reader.read("started", run.started);
  reader.read("scenario", scenario);
  reader.optional("fleet_id", run.fleetId);
  reader.optional("node_rank", run.nodeRank);
  reader.optional("node_count", run.nodeCount);
  MUSTER_CHECK_OK(reader.status());
  run.planName = fs::path(plan).stem().string();
  run.simulated = !scenario.empty();
  return {};
}

/// The lines of a journal, of which none is kept but the first. Opened once, without following a link or
/// waiting for a pipe's writer, and read no further than a journal is long.
class JournalLines {
 public:
  /// `directory`: as RecordReader::read() has it.
  JournalLines(const fs::path& path, const fs::path& directory) {
    if (auto found = openFound(path, directory); found.ok()) file_ = std::move(*found);
  }

  /// Why it is none; empty: it is one.
  [[nodiscard]] std::string problem() const {
    struct stat info {};
    if (!file_.valid() || fstat(file_.get(), &info) != 0) return "its journal is not a regular file";
    if (static_cast<uint64_t>(info.st_size) > kMostBytes)
      return fmt::format("its journal has {} bytes, which exceeds the maximum", info.st_size);
    return "";
  }

  /// The first bytes of the next whole line, `most` of them; nothing after the last.
  std::optional<std::string> next(size_t most) {
    std::string line;
    for (;;) {
      if (at_ == end_ && !fill()) return std::nullopt;
      const char* begin = buffer_.data() + at_;
      const void* found = std::memchr(begin, '\n', end_ - at_);
      const size_t length = found == nullptr ? end_ - at_ : static_cast<const char*>(found) - begin;
      line.append(begin, std::min(length, most - line.size()));
      at_ += length + (found == nullptr ? 0 : 1);
      if (found != nullptr) return line;
    }
  }

 private:
  bool fill() {
    ssize_t n = 0;
    do n = read(file_.get(), buffer_.data(), std::min<uint64_t>(buffer_.size(), kMostBytes - read_));
    while (n < 0 && errno == EINTR);
    at_ = 0;
    end_ = static_cast<size_t>(std::max<ssize_t>(n, 0));
    read_ += end_;
    return end_ > 0;
  }

  static constexpr uint64_t kMostBytes = 256ull << 20;  ///< a real one is below its record's few
  Fd file_;
  std::vector<char> buffer_ = std::vector<char>(size_t{64} << 10);
  size_t at_ = 0;
  size_t end_ = 0;
  uint64_t read_ = 0;
};

}  // namespace

Result<InterruptedRun> readInterruptedRun(const fs::path& folder, const std::string& shown,
                                          const fs::path& directory) {
  JournalLines journal(folder / kJournalName, directory);
  if (const std::string problem = journal.problem(); !problem.empty()) return unusable(problem);
  const std::optional<std::string> line = journal.next(kLongestLine);
  if (!line || line->size() == kLongestLine) return unusable("its journal has no complete first line");
  InterruptedRun run;
  if (const Status read = readFrozen(*line, run); !read.ok())
    return unusable("its journal cannot be read: " + read.error().text());
  if (!isPlainName(run.node))
    return unusable(fmt::format("\"{}\" is not a node name", printable(run.node, 80)));
  run.path = shown;
  while (const auto next = journal.next(kStageLine.size()))
    if (*next == kStageLine) ++run.stages;
  run.running = isHeld(folder, directory);
  run.goOnWith = commandToGoOn(run, folder);
  return run;
}

}  // namespace muster::fleet
