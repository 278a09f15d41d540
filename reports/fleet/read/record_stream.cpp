// SPDX-License-Identifier: Apache-2.0
// See record_stream.h: which files are records, and many of them in a few threads.
#include "reports/fleet/read/record_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <optional>
#include <thread>
#include <variant>

#include "runner/core/text.h"

namespace muster::fleet {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRecordName = "record.json";
/// What this project itself writes beside records.
constexpr std::array kOthers = {"fleet.json", "fleet-inputs.json", "signature.dsse.json", "slurm.json"};
constexpr int kDeepestFolder = 16;
/// Of what is kept of a record that cannot be used; the end of its path says whose it is.
constexpr size_t kQuarantinePathBytes = 300;
constexpr size_t kQuarantineReasonBytes = 400;

/// A folder that went while its parent was read holds nothing: whoever owns it must not end the whole search.
Status unreadable(const fs::path& folder, int depth, const std::error_code& error) {
  if (depth > 0 && error == std::errc::no_such_file_or_directory) return {};
  return Error{ErrorCode::kIo, "cannot read this folder: " + error.message(), folder.string()};
}

template <typename Names>
bool isOneOf(const std::string& name, const Names& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What lies below a folder.
struct FoundFiles {
  bool insideRuns = false;  ///< a run's own folder is searched for further records, too
  // As texts: a path of many folders needs several times its length.
  std::vector<std::string> records;
  std::vector<std::string> interruptedRuns;  ///< folders of runs without a record
};

Status findIn(fs::path folder, int depth, bool insideRun, FoundFiles& found) {
  std::error_code error;
  const auto holds = [&](const char* name) {
    return fs::symlink_status(folder / name, error).type() != fs::file_type::not_found;
  };
  // The other files of a run through Kubernetes are JSON, too.
  const auto holdsFolder = [&](const char* name) {
    return fs::is_directory(fs::symlink_status(folder / name, error));
  };
  if (holds("k8s.json") && holdsFolder("rounds") && holdsFolder("records")) folder /= "records";
  // A link here would be followed out of the run; a pipe of this name is named by the reader.
  if (holds(kRecordName)) {
    found.records.push_back((folder / kRecordName).string());
    insideRun = true;
  } else if (holds(kJournalName)) {
    found.interruptedRuns.push_back(folder.string());
    insideRun = true;
  }
  if (insideRun && !found.insideRuns) return {};
  fs::directory_iterator entries(folder, error);
  if (error) return unreadable(folder, depth, error);
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (error) return unreadable(folder, depth, error);
    const std::string name = entries->path().filename().string();
    const fs::file_status status = entries->symlink_status(error);
    if (name.starts_with(".") || fs::is_symlink(status)) continue;
    if (fs::is_directory(status)) {
      if (depth < kDeepestFolder && name != kAttemptsFolder)
        MUSTER_CHECK_OK(findIn(entries->path(), depth + 1, insideRun, found));
    } else if (!insideRun && entries->path().extension() == ".json" && !isOneOf(name, kOthers)) {
      found.records.push_back(entries->path().string());
    }
  }
  return error ? unreadable(folder, depth, error) : Status();
}

/// What became of one file.
using ReadFile = std::variant<std::monostate, NodeSummary, Quarantined>;

/// Whether a job of the run writes a record at `path`.
Status checkPath(const RecordRules& rules, const std::string& path) {
  if (!rules.nodeAt || !rules.nodeAt(path).empty()) return {};
  return Error{ErrorCode::kUsage, "no job of this run writes a record here; check who created it", ""};
}

/// Why the journal of a run without a record does not count. It has no MAC: where records must have one, only
/// its place tells whose it is.
Status checkJournal(const RecordRules& rules, const std::string& path, const std::string& said) {
  if (!rules.nodeAt && !rules.origin.runKey.empty())
    return Error{ErrorCode::kUsage,
                 "a run without a record has no MAC, so with --record-key it does not count", ""};
  return checkPlace(rules, path, said, nullptr);
}

/// Whose a record is that cannot be used.
std::string nodeOf(const RecordRules& rules, const std::string& path, const std::string& said) {
  return rules.nodeAt ? rules.nodeAt(path) : said;
}

/// However deep its folder and whatever it holds, a record that cannot be used costs about as little.
Quarantined setAside(std::string path, std::string node, const std::string& reason) {
  if (path.size() > kQuarantinePathBytes) {
    size_t at = path.size() - kQuarantinePathBytes;
    while (at < path.size() && (static_cast<unsigned char>(path[at]) & 0xC0) == 0x80)
      ++at;  // inside a letter
    path = "..." + path.substr(at);
  }
  return {std::move(path), std::move(node), printable(reason, kQuarantineReasonBytes), false};
}

ReadFile outcomeOf(RecordReader& reader, Result<NodeSummary> summary, std::string name,
                   const RecordRules& rules) {
  const Status placed =
      summary.ok() ? checkPlace(rules, name, summary->node, &*summary) : Status(summary.error());
  if (!placed.ok()) {
    std::string node = nodeOf(rules, name, reader.lastNode());
    Quarantined bad = setAside(std::move(name), std::move(node), placed.error().message);
    bad.torn = placed.error().code == ErrorCode::kCorrupt && rules.origin.runKey.empty();
    return bad;
  }
  summary->path = std::move(name);
  return std::move(*summary);
}

/// Folder by folder, as fs::path has it.
bool isPathBefore(const std::string& a, const std::string& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char left, char right) {
    const auto place = [](char c) { return c == '/' ? -1 : static_cast<int>(static_cast<unsigned char>(c)); };
    return place(left) < place(right);
  });
}

Result<FoundFiles> findAll(const fs::path& folder, bool insideRuns) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return Error{ErrorCode::kUsage, "no such directory; expected the parent of the run directories",
                 folder.string()};
  FoundFiles found{insideRuns, {}, {}};
  MUSTER_CHECK_OK(findIn(folder, 0, false, found));
  std::sort(found.records.begin(), found.records.end(), isPathBefore);
  std::sort(found.interruptedRuns.begin(), found.interruptedRuns.end(), isPathBefore);
  return found;
}

/// The path of something below `folder`, for people.
std::string shownPath(const fs::path& path, const fs::path& folder) {
  return validUtf8(path.lexically_relative(folder).string());
}

}  // namespace

Status checkPlace(const RecordRules& rules, const std::string& path, const std::string& said,
                  const NodeSummary* record) {
  MUSTER_CHECK_OK(checkPath(rules, path));
  if (!rules.nodeAt) return {};
  const std::string node = rules.nodeAt(path);
  if (said != node)
    return Error{
        ErrorCode::kUsage,
        fmt::format("it claims to be of {}, but is in the directory of {}: neither counts", said, node), ""};
  return rules.check ? rules.check(node, path, record) : Status();
}

Result<std::vector<fs::path>> findRecords(const fs::path& folder) {
  MUSTER_TRY(FoundFiles found, findAll(folder, false));
  return std::vector<fs::path>(found.records.begin(), found.records.end());
}

Result<std::vector<fs::path>> findInterruptedRuns(const fs::path& folder) {
  MUSTER_TRY(FoundFiles found, findAll(folder, false));
  return std::vector<fs::path>(found.interruptedRuns.begin(), found.interruptedRuns.end());
}

int readerThreads() {
  constexpr unsigned kMost = 16;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

FleetRecords readEach(const RecordSource& source, int threads, const ReadLimits& limits,
                      const std::vector<Waiver>& waivers, const RecordRules& rules) {
  const auto& [count, read, nameOf] = source;
  FleetRecords records;
  records.names->give(waivers);
  std::vector<ReadFile> outcomes(count);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    RecordReader reader(*records.names, limits, rules.origin);
    for (size_t i = next++; i < count; i = next++) {
      try {
        const Status placed = checkPath(rules, nameOf(i));
        outcomes[i] = outcomeOf(reader, placed.ok() ? read(reader, i) : Result<NodeSummary>(placed.error()),
                                nameOf(i), rules);
      } catch (const std::bad_alloc&) {  // one record must not end the whole fleet
        outcomes[i] = setAside(nameOf(i), nodeOf(rules, nameOf(i), reader.lastNode()),
                               "there is not enough memory to read it");
        reader = RecordReader(*records.names, limits, rules.origin);
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  for (ReadFile& outcome : outcomes) {
    if (auto* node = std::get_if<NodeSummary>(&outcome)) records.nodes.push_back(std::move(*node));
    if (auto* bad = std::get_if<Quarantined>(&outcome)) records.quarantined.push_back(std::move(*bad));
    outcome = std::monostate();
  }
  return records;
}

Result<FleetRecords> readFleet(const fs::path& folder, int threads, const ReadLimits& limits,
                               const std::vector<Waiver>& waivers, const RecordRules& rules) {
  MUSTER_TRY(const FoundFiles found, findAll(folder, /*insideRuns=*/rules.nodeAt != nullptr));
  const std::vector<std::string>& paths = found.records;
  FleetRecords records =
      readEach({paths.size(), [&](RecordReader& reader, size_t i) { return reader.read(paths[i], folder); },
                [&](size_t i) { return shownPath(paths[i], folder); }},
               threads, limits, waivers, rules);
  for (const std::string& path : found.interruptedRuns) {
    const std::string shown = shownPath(path, folder);
    auto run = readInterruptedRun(path, shown, folder);
    const Status placed = run.ok() ? checkJournal(rules, shown, run->node) : Status(run.error());
    if (placed.ok())
      records.interruptedRuns.push_back(std::move(*run));
    else
      records.quarantined.push_back(setAside(shown, nodeOf(rules, shown, ""), placed.error().message));
  }
  return records;
}

}  // namespace muster::fleet
