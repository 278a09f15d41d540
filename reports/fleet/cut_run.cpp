// SPDX-License-Identifier: Apache-2.0
// See cut_run.h.
#include "reports/fleet/cut_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>

#include "runner/core/files.h"
#include "runner/core/json.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace fs = std::filesystem;
namespace {

/// The first line holds the texts of plan and waivers.
constexpr size_t kLongestLine = 8u << 20;
/// Each further line is a start or a stage; its type stands first.
constexpr std::string_view kStageLine = "{\"type\":\"stage\"";

Error unusable(const std::string& why) {
  return {ErrorCode::kProtocol, "a run without a record, and " + why + "; run the plan on its node again",
          ""};
}

/// Whether a process has the run's lock, as far as the file system's locks reach.
bool isHeld(const fs::path& folder) {
  const Fd lock(open((folder / ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return lock.valid() && flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// One word for a shell.
std::string quoted(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:,=@+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !text.empty()) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

Status readFrozen(const std::string& line, CutRun& run) {
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
  MUSTER_CHECK_OK(reader.status());
  run.planName = fs::path(plan).stem().string();
  run.simulated = !scenario.empty();
  return {};
}

/// How many whole lines are of finished stages; lines may be long, so none is kept.
size_t countStages(std::ifstream& journal) {
  size_t stages = 0;
  std::string begin(kStageLine.size(), '\0');
  while (journal.read(begin.data(), static_cast<std::streamsize>(begin.size()))) {
    const bool isStage = begin == kStageLine;
    const bool ended = begin.find('\n') != std::string::npos;
    if (!ended) journal.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    if (isStage && !journal.eof()) ++stages;
  }
  return stages;
}

}  // namespace

Result<CutRun> readCutRun(const fs::path& folder, const std::string& shown) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(folder / kJournalName, error)))
    return unusable("its journal is no regular file");
  std::ifstream journal(folder / kJournalName, std::ios::binary);
  std::string line(kLongestLine, '\0');
  journal.getline(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(std::max<std::streamsize>(journal.gcount(), 1)) - 1);
  if (!journal || journal.eof()) return unusable("its journal has no whole first line");
  CutRun run;
  if (const Status read = readFrozen(line, run); !read.ok())
    return unusable("its journal cannot be read: " + read.error().text());
  if (!isPlainName(run.node))
    return unusable(fmt::format("\"{}\" is no name of a node", printable(run.node, 80)));
  run.path = shown;
  run.stages = countStages(journal);
  run.running = isHeld(folder);
  run.goOnWith = fmt::format("muster run --resume {}", quoted(folder.string()));
  // A real run is resumed on its node only, which the scheduler may call otherwise than it calls itself.
  if (!run.simulated) run.goOnWith += " --node-name " + run.node;
  return run;
}

}  // namespace muster::fleet
