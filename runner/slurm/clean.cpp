// SPDX-License-Identifier: Apache-2.0
// Finds and removes old run directories.
#include "runner/slurm/clean.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/slurm/drain.h"
#include "runner/slurm/progress.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {
namespace fs = std::filesystem;
namespace {

double changed(const fs::path& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return 0;
  return static_cast<double>(info.st_mtime);
}

/// When anything directly in the run folder, or in those of its folders that jobs write to, last changed.
double lastChange(const fs::path& folder) {
  double last = changed(folder);
  for (const char* part : {"", "exits", "claims", "logs", "records/nodes", "records/cluster", "fleet"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder / part, error))
      last = std::max(last, changed(entry.path()));
  }
  return last;
}

/// Why a run that is old enough stays all the same.
Result<std::string> whyKept(const RunStore& run) {
  std::error_code none;  // whoever is at work on the run has made its lock; looking for one makes nothing
  if (fs::exists(run.folder() / ".lock", none))
    if (const auto lock = run.lock(); !lock.ok()) return lock.error().message;
  MUSTER_TRY(const auto submitted, run.jobs());
  MUSTER_TRY(const uid_t owner, run.owner());
  MUSTER_TRY(const auto jobs, readJobs(jobNumbers(submitted), owner));
  if (anyLive(jobs)) return std::string("its jobs still wait or run");
  MUSTER_TRY(const auto drained, drainedByRun(run));
  if (!drained.empty())
    return fmt::format("it drained {} and could not give it back without its notes (muster slurm undrain)",
                       drained.front().node);
  return std::string();
}

}  // namespace

Result<std::vector<OldRun>> oldRuns(const fs::path& folder, double age, double now) {
  std::error_code error;
  std::vector<OldRun> runs;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_symlink(error) || !entry.is_directory(error) || !RunStore::holdsRun(entry.path())) continue;
    OldRun old{entry.path(), now - lastChange(entry.path()), ""};
    if (old.age < age) {
      old.kept = "is not old enough";
    } else if (const auto run = RunStore::open(entry.path()); !run.ok()) {
      old.kept = run.error().text();
    } else {
      MUSTER_TRY(old.kept, whyKept(*run));
    }
    runs.push_back(std::move(old));
  }
  if (error) return Error{ErrorCode::kUsage, "cannot list it: " + error.message(), folder.string()};
  std::sort(runs.begin(), runs.end(), [](const OldRun& a, const OldRun& b) { return a.folder < b.folder; });
  return runs;
}

Status removeRuns(const std::vector<OldRun>& runs) {
  for (const OldRun& run : runs) {
    if (!run.kept.empty()) continue;
    std::error_code error;
    fs::remove_all(run.folder, error);
    if (error) return Error{ErrorCode::kIo, "cannot remove it: " + error.message(), run.folder.string()};
  }
  return {};
}

}  // namespace muster::slurm
