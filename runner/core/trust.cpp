// SPDX-License-Identifier: Apache-2.0
// See trust.h.
#include "runner/core/trust.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace muster {
namespace fs = std::filesystem;
namespace {

/// Whose files are believed beside root's.
struct Believed {
  uid_t user = geteuid();
  uid_t caller = geteuid();  ///< who called sudo, where that counts
};

bool belongsToOthers(const struct stat& info, const Believed& believed = {}) {
  return info.st_uid != 0 && info.st_uid != believed.user && info.st_uid != believed.caller;
}

Error refused(const std::string& what, const fs::path& path) {
  return {ErrorCode::kUsage, "refused: " + what, path.string()};
}

Error foreignOwner(const std::string& kind, const struct stat& info, const fs::path& path) {
  return refused(fmt::format("the {} belongs to user {}; it must belong to root or to user {}, who runs this",
                             kind, info.st_uid, geteuid()),
                 path);
}

Error writableByOthers(const std::string& kind, const struct stat& info, const char* next,
                       const fs::path& path) {
  return refused(fmt::format("the {} is writable by others than its owner (mode {:04o}); {}", kind,
                             info.st_mode & 07777, next),
                 path);
}

/// Of a path without links: one that is there now was put there meanwhile.
Result<struct stat> statReal(const fs::path& path, const std::string& kind) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return Error{ErrorCode::kIo, errnoText(errno), path.string()};
  if (S_ISLNK(info.st_mode))
    return refused(fmt::format("the {} became a symbolic link while it was checked", kind), path);
  return info;
}

Status checkOwnerOnly(const fs::path& path, const std::string& kind) {
  MUSTER_TRY(const struct stat info, statReal(path, kind));
  if (belongsToOthers(info)) return foreignOwner(kind, info, path);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  const bool shared =
      S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;  // meant for everybody, as /tmp is
  return writableByOthers(kind, info, shared ? "put it into a folder of its own" : "run chmod go-w on it",
                          path);
}

/// Whether more users than the owner may write. Where each user has a group of his own, it has his number.
bool isOpen(const struct stat& info) {
  const bool ownGroup = info.st_gid == info.st_uid;
  return (info.st_mode & S_IWOTH) != 0 || ((info.st_mode & S_IWGRP) != 0 && !ownGroup);
}

Status checkAbove(const fs::path& folder, const std::string& kind, const Believed& believed) {
  const std::string what = "folder above the " + kind;
  MUSTER_TRY(const struct stat info, statReal(folder, what));
  if (belongsToOthers(info, believed)) return foreignOwner(what, info, folder);
  const bool sticky = (info.st_mode & S_ISVTX) != 0;
  return isOpen(info) && !sticky ? Status(writableByOthers(what, info, "run chmod go-w on it", folder))
                                 : Status();
}

/// Whether `folder` is the running program's folder or above it.
bool holdsProgram(const fs::path& folder, const fs::path& programFolder) {
  const auto [end, ignored] =
      std::mismatch(folder.begin(), folder.end(), programFolder.begin(), programFolder.end());
  return end == folder.end();
}

Error cannotWrite(const fs::path& path, int error) {
  return {ErrorCode::kUsage, "cannot write it: " + errnoText(error), path.string()};
}

Result<fs::path> realPath(const fs::path& path, const std::string& kind) {
  std::error_code failure;
  fs::path real = fs::canonical(path, failure);
  if (!failure) return real;
  return Error{failure == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound : ErrorCode::kIo,
               fmt::format("cannot find the {}: {}", kind, failure.message()), path.string()};
}

/// Where folders are left out that can be relied on as much as this program; empty: nowhere.
Result<fs::path> programFolder(Above above) {
  return above == Above::kAll ? Result<fs::path>(fs::path()) : executableFolder();
}

/// From the root down: below a folder that was refused nothing can be relied on.
Status checkAllAbove(const fs::path& own, const std::string& kind, const fs::path& program,
                     const Believed& believed) {
  fs::path folder;
  for (const fs::path& part : own) {
    folder /= part;
    if (folder != own && !holdsProgram(folder, program)) MUSTER_CHECK_OK(checkAbove(folder, kind, believed));
  }
  return {};
}

/// The user who called sudo, from its variable; this user where nobody did.
uid_t sudoCaller() {
  const char* text = std::getenv("SUDO_UID");
  const long long number = text == nullptr ? -1 : std::strtoll(text, nullptr, 10);
  return geteuid() == 0 && number > 0 && number <= 0xfffffffe ? static_cast<uid_t>(number) : geteuid();
}

Status checkOwnFile(int fd, const fs::path& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return cannotWrite(path, errno);
  const char* next = "another user may have put it there: remove it, or choose another folder";
  if (!S_ISREG(info.st_mode)) return refused(fmt::format("it is not a regular file; {}", next), path);
  if (info.st_uid != geteuid())
    return refused(fmt::format("it belongs to user {}; {}", info.st_uid, next), path);
  if (info.st_nlink > 1)
    return refused(fmt::format("it has {} names (hard links); {}", info.st_nlink, next), path);
  return {};
}

}  // namespace

Result<fs::path> trustedPath(const fs::path& path, const std::string& kind, Above above) {
  MUSTER_TRY(const fs::path real, realPath(path, kind));
  const fs::path own = real.parent_path();
  MUSTER_TRY(const fs::path program, programFolder(above));
  MUSTER_CHECK_OK(checkAllAbove(own, kind, program, {}));
  if (!holdsProgram(own, program)) MUSTER_CHECK_OK(checkOwnerOnly(own, "folder of the " + kind));
  MUSTER_CHECK_OK(checkOwnerOnly(real, kind));
  return real;
}

Result<Fd> openOwnFile(const fs::path& path, int flags, mode_t mode) {
  const int safe = (flags & ~O_TRUNC) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Fd file(open(path.c_str(), safe | O_CREAT | O_EXCL, mode));
  if (file.valid()) return file;
  if (errno != EEXIST) return cannotWrite(path, errno);
  file.reset(open(path.c_str(), safe));
  // ELOOP: a symbolic link. ENXIO: a pipe that nobody reads, or a socket.
  if (!file.valid() && (errno == ELOOP || errno == ENXIO))
    return refused(
        "it is not a regular file; another user may have put it there: remove it, or choose another folder",
        path);
  if (!file.valid()) return cannotWrite(path, errno);
  MUSTER_CHECK_OK(checkOwnFile(file.get(), path));
  if ((flags & O_TRUNC) != 0 && ftruncate(file.get(), 0) != 0) return cannotWrite(path, errno);
  return file;
}

Result<std::string> readOwnFile(const fs::path& path, uint64_t limit) {
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  struct stat folder {
  }, info{};
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file.valid())
    return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUsage,
                 "cannot read it: " + errnoText(errno), path.string()};
  if (stat(parent.c_str(), &folder) != 0 || fstat(file.get(), &info) != 0)
    return Error{ErrorCode::kIo, "cannot read it: " + errnoText(errno), path.string()};
  if (!S_ISREG(info.st_mode)) return refused("it is not a regular file", path);
  if (info.st_uid != folder.st_uid)
    return refused(fmt::format("it belongs to user {}, its folder to {}", info.st_uid, folder.st_uid), path);
  // Through the descriptor: what was checked is what is read.
  auto text = readFile(fmt::format("/proc/self/fd/{}", file.get()), limit);
  if (!text.ok()) return Error{text.error().code, text.error().message, path.string()};
  return text;
}

Result<fs::path> ownFolder(const fs::path& folder) {
  const std::string kind = "run folder";
  MUSTER_TRY(const fs::path real, realPath(folder, kind));
  const Believed believed{geteuid(), sudoCaller()};
  MUSTER_TRY(const fs::path program, programFolder(Above::kOthersThanProgram));
  if (geteuid() == 0) {
    MUSTER_CHECK_OK(checkAllAbove(real, kind, program, believed));
  }
  MUSTER_TRY(const struct stat info, statReal(real, kind));
  if (belongsToOthers(info, believed)) return foreignOwner(kind, info, real);
  if ((info.st_mode & S_IWOTH) != 0 || (geteuid() == 0 && isOpen(info)))
    return writableByOthers(kind, info, "use a folder of your own", real);
  return real;
}

}  // namespace muster
