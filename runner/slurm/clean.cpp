// SPDX-License-Identifier: Apache-2.0
// Finds and removes old run directories.
#include "runner/slurm/clean.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/slurm/drain.h"
#include "runner/slurm/progress.h"
#include "runner/slurm/submission.h"
#include "runner/system/trust.h"

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

bool isMountPoint(const fs::path& path) {
  struct statx info {};
  constexpr int kItself = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  return statx(AT_FDCWD, path.c_str(), kItself, 0, &info) == 0 &&
         (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/// What lies inside `folder` and must not be removed with it: another run, which an earlier version or a hand
/// put there, or what is mounted. Empty: nothing.
Result<std::string> foreignInside(const fs::path& folder) {
  constexpr int kDeepest = 32;  // as other commands read folders of runs; each level of a walk stays open
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at.depth() > kDeepest)
      return Error{ErrorCode::kUsage,
                   fmt::format("cannot be read: it is more than {} folders deep", kDeepest), folder.string()};
    if (isMountPoint(at->path()))
      return fmt::format("something is mounted inside it: {}", at->path().string());
    if (!at->is_symlink(error) && at->is_directory(error) && RunStore::holdsRun(at->path()))
      return fmt::format("another run lies inside it: {}", at->path().string());
  }
  if (error) return Error{ErrorCode::kUsage, "cannot be read: " + error.message(), folder.string()};
  return std::string();
}

/// Finds why a run that is old enough stays all the same. What its user wrote concerns it alone; an error is
/// one of all runs: Slurm does not answer.
Status findWhyKept(const RunStore& run, OldRun& old) {
  if (const auto own = ownFolder(run.folder()); !own.ok()) {
    old.kept = own.error().message;
    return {};
  }
  const auto foreign = foreignInside(run.folder());
  if (!foreign.ok()) {
    old.keep(foreign.error());
    return {};
  }
  old.kept = *foreign;
  if (!old.kept.empty()) return {};
  std::error_code none;  // whoever is at work on the run has made its lock; looking for one makes nothing
  if (fs::exists(run.folder() / ".lock", none))
    if (const auto lock = run.lock(); !lock.ok()) {
      old.kept = lock.error().message;
      return {};
    }
  const auto submitted = run.jobs();
  const auto owner = run.owner();
  const auto drained = drainedByRun(run);
  if (!submitted.ok() || !owner.ok() || !drained.ok()) {
    old.keep(!submitted.ok() ? submitted.error() : !owner.ok() ? owner.error() : drained.error());
    return {};
  }
  MUSTER_TRY(const auto jobs, readJobs(jobNumbers(*submitted), *owner));
  if (anyLive(jobs))
    old.kept = "its jobs still wait or run";
  else if (!drained->empty())
    old.kept =
        fmt::format("it drained {} and could not give it back without its notes (muster slurm undrain)",
                    drained->front().node);
  return {};
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
      MUSTER_CHECK_OK(findWhyKept(*run, old));
    }
    runs.push_back(std::move(old));
  }
  if (error) return Error{ErrorCode::kUsage, "cannot list it: " + error.message(), folder.string()};
  std::sort(runs.begin(), runs.end(), [](const OldRun& a, const OldRun& b) { return a.folder < b.folder; });
  return runs;
}

void removeRun(OldRun& run) {
  std::error_code error;
  fs::remove_all(run.folder, error);
  if (error) run.keep({ErrorCode::kIo, "cannot remove it: " + error.message(), run.folder.string()});
}

}  // namespace muster::slurm
