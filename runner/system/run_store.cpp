// SPDX-License-Identifier: Apache-2.0
// See run_store.h.
#include "runner/system/run_store.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;

namespace {

Error notEmpty(const fs::path& folder) {
  return Error{ErrorCode::kUsage, "this directory is not empty and was not changed; choose another --out",
               folder.string()};
}

}  // namespace

Status requireEmpty(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) || fs::is_empty(folder, error)) return {};
  return notEmpty(folder);
}

Status claimEmpty(const fs::path& folder) {
  const fs::path inputs = folder / "inputs";
  if (mkdir(inputs.c_str(), 0777) == 0) return {};
  if (errno == EEXIST) return notEmpty(folder);
  return Error{ErrorCode::kIo, errnoText(errno), inputs.string()};
}

Result<Fd> lockRun(const fs::path& folder) {
  MUSTER_TRY(Fd lock, openLockFile(folder / ".lock"));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kUsage, "another muster process is using this run directory; wait until it ends",
                 folder.string()};
  return lock;
}

Result<Json> readOwnJson(const fs::path& path) {
  constexpr uint64_t kMostBytes = 64ull << 20;
  MUSTER_TRY(const std::string text, readOwnFile(path, kMostBytes));
  return parseJson(text).context(path.string());
}

Status writeJson(const fs::path& path, const Json& json) {
  return writeFileAtomically(path, dumpJson(json, 1) + "\n");
}

Status moveInto(const fs::path& to, const std::vector<std::pair<fs::path, const char*>>& parts) {
  std::error_code error;
  for (const auto& [from, name] : parts) {
    if (!fs::exists(from, error)) continue;
    fs::rename(from, to / name, error);
    if (error) return Error{ErrorCode::kIo, "cannot set it aside: " + error.message(), from.string()};
  }
  return {};
}

}  // namespace muster
