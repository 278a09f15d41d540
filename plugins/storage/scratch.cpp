// SPDX-License-Identifier: Apache-2.0
// See scratch.h.
#include "plugins/storage/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runner/core/text.h"
#include "runner/system/secret.h"
#include "runner/system/trust.h"

namespace muster::storage {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMostTable = 16u << 20;
constexpr double kGiga = 1e9;

/// A field of mountinfo: spaces and backslashes are written as \040 and \134.
std::string unescaped(std::string_view field) {
  std::string text;
  for (size_t i = 0; i < field.size(); ++i) {
    const bool isOctal = field[i] == '\\' && i + 3 < field.size() &&
                         field.substr(i + 1, 3).find_first_not_of("01234567") == std::string_view::npos;
    if (!isOctal) {
      text += field[i];
      continue;
    }
    text += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
    i += 3;
  }
  return printable(text, 1000);
}

/// The id of the mount below a descriptor.
Result<std::string> mountId(int fd) {
  MUSTER_TRY(const std::string info, readFile(fmt::format("/proc/self/fdinfo/{}", fd), kMostTable));
  for (const std::string& line : split(info, '\n'))
    if (line.starts_with("mnt_id:")) return std::string(trim(std::string_view(line).substr(7)));
  return Error{ErrorCode::kIo, "the kernel does not tell the mount of a file", "/proc/self/fdinfo"};
}

/// Inode number of the top directory of the mount below `directory`; empty where the kernel (before 5.8) does
/// not tell where that is.
std::string mountRoot(int directory) {
  constexpr int kMostLevels = 1000;
  Fd at(openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; at.valid() && level < kMostLevels; ++level) {
    struct statx info {};
    if (statx(at.get(), "", AT_EMPTY_PATH, STATX_INO, &info) != 0) break;
    if ((info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) return std::to_string(info.stx_ino);
    at = Fd(openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  return "";
}

}  // namespace

std::string inodeOf(int directory) {
  struct stat info {};
  return fstat(directory, &info) == 0 ? std::to_string(info.st_ino) : "";
}

Result<Mount> mountOf(int directory) {
  MUSTER_TRY(const std::string id, mountId(directory));
  MUSTER_TRY(const std::string table, readFile("/proc/self/mountinfo", kMostTable));
  for (const std::string& line : split(table, '\n')) {
    // "36 35 98:0 /root /at rw,noatime shared:1 - ext3 /dev/sda1 rw,errors=continue"
    const size_t dash = line.find(" - ");
    if (!line.starts_with(id + " ") || dash == std::string::npos) continue;
    const std::vector<std::string> mount = split(line.substr(0, dash), ' ');
    const std::vector<std::string> system = split(line.substr(dash + 3), ' ');
    if (mount.size() < 6 || system.size() < 3) break;
    return Mount{unescaped(system[1]), unescaped(system[0]), unescaped(mount[5] + "," + system[2]),
                 mountRoot(directory)};
  }
  return Error{ErrorCode::kIo, "has no line for mount " + id, "/proc/self/mountinfo"};
}

Result<Mount> mountAbove(const std::string& directory) {
  for (fs::path path = directory; path.is_absolute(); path = path.parent_path()) {
    const Fd fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd.valid()) return mountOf(fd.get());
    if (path == path.root_path()) break;
  }
  return Error{ErrorCode::kIo, "cannot be opened, nor can what is above it", printable(directory, 200)};
}

Status reportMount(const Site& site, const Mount& mount) {
  MUSTER_CHECK_OK(site.host.fact("mount_source", mount.source));
  MUSTER_CHECK_OK(site.host.fact("file_system", mount.type));
  return site.host.fact("mount_options", mount.options);
}

Result<Fd> openDirectory(const std::string& path) {
  const std::string shown = printable(path, 200);
  // A slash at the end would have a link followed.
  const fs::path plain = path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  if (!plain.is_absolute() || plain.lexically_normal() != plain)
    return Error{ErrorCode::kUsage, "expected an absolute path without \".\" and \"..\"", shown};
  Fd directory(open(plain.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.valid()) return directory;
  const int error = errno;
  struct stat info {};
  if (lstat(plain.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
    return Error{ErrorCode::kUsage, "is a symbolic link; name the directory that it leads to", shown};
  if (error == ENOTDIR)
    return Error{ErrorCode::kUsage,
                 "is not a directory; files and block devices that exist are never written to", shown};
  return Error{ErrorCode::kIo, "cannot open the directory: " + errnoText(error), shown};
}

Result<Fd> openIn(const std::string& directory) {
  MUSTER_TRY(const Fd asNamed, openDirectory(directory));
  // For root: not where another user could put something else into the place of what is made there.
  MUSTER_TRY(const fs::path real, outputFolder(directory));
  return openDirectory(real.string());
}

Status requireOwn(int directory, const std::string& shown) {
  constexpr uid_t kNobody = 65534;  // root on a file system of the network that knows no root
  struct stat info {};
  if (fstat(directory, &info) != 0)
    return Error{ErrorCode::kIo, "cannot tell whose it is: " + errnoText(errno), shown};
  const bool isOurs = info.st_uid == geteuid() || (geteuid() == 0 && info.st_uid == kNobody);
  if (isOurs && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return Error{ErrorCode::kIo,
               "another directory was put into the place of the one just made; nothing was written", shown};
}

ssize_t readFully(int fd, char* buffer, size_t size) {
  size_t length = 0;
  while (length < size) {
    const ssize_t n = read(fd, buffer + length, size - length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return n;
    if (n == 0) break;
    length += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(length);
}

int writeFully(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? EIO : errno;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

Result<std::string> newName() {
  MUSTER_TRY(const std::string random, randomSecret());
  return "muster-storage-" + random.substr(0, 16);
}

Result<Scratch> Scratch::make(const Site& site, const std::string& directory) {
  if (directory.empty()) MUSTER_CHECK_OK(makeOwnSubfolder(site.artifacts, "stage's artifacts folder"));
  const std::string above =
      directory.empty() ? fs::absolute(site.artifacts).lexically_normal().string() : directory;
  MUSTER_TRY(Fd parent, openIn(above));
  MUSTER_TRY(std::string name, newName());
  const std::string shown = printable((fs::path(above) / name).string(), 200);
  if (mkdirat(parent.get(), name.c_str(), 0700) != 0)
    return Error{ErrorCode::kIo, "cannot make a directory: " + errnoText(errno), shown};
  Fd own(openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!own.valid()) return Error{ErrorCode::kIo, "cannot open it: " + errnoText(errno), shown};
  MUSTER_CHECK_OK(requireOwn(own.get(), shown));
  std::error_code error;
  if (!fs::is_empty(fmt::format("/proc/self/fd/{}/", own.get()), error) || error)
    return Error{ErrorCode::kIo, "is not the empty directory that was just made; nothing was written", shown};
  return Scratch(std::move(parent), std::move(own), std::move(name), shown);
}

Scratch::~Scratch() {
  if (!parent_.valid()) return;  // moved from
  // Its contents by its descriptor, and the name only if it is still its own: another directory may have been
  // given this name. What cannot be removed is seen by its name.
  std::error_code error;
  for (fs::directory_iterator at(path() + "/", error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    fs::remove_all(at->path(), ignored);
  }
  struct stat own {
  }, named{};
  if (fstat(own_.get(), &own) == 0 &&
      fstatat(parent_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && own.st_dev == named.st_dev &&
      own.st_ino == named.st_ino)
    unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR);
}

std::string Scratch::path() const {
  return fmt::format("/proc/self/fd/{}", own_.get());
}

Status Scratch::requireSpace(uint64_t bytes, uint64_t files, uint64_t keepFree) const {
  struct statvfs system {};
  if (fstatvfs(own_.get(), &system) != 0)
    return Error{ErrorCode::kIo, "cannot tell its free space: " + errnoText(errno), shown_};
  const auto block = static_cast<double>(system.f_frsize);
  const double free = static_cast<double>(system.f_bavail) * block;
  // Whatever the plan says, a hundredth stays free.
  const double margin =
      std::max(static_cast<double>(keepFree), static_cast<double>(system.f_blocks) * block / 100);
  if (free < static_cast<double>(bytes) + margin)
    return Error{
        ErrorCode::kIo,
        fmt::format("the test writes {:.3g} GB and {:.3g} GB must stay free (`keep_free`, at least 1%), "
                    "but the file system has {:.3g} GB free; choose a smaller size or another "
                    "`directory`",
                    static_cast<double>(bytes) / kGiga, margin / kGiga, free / kGiga),
        shown_};
  // File systems without a fixed number of inodes say 0. A tenth stays for others.
  const auto inodes = static_cast<double>(system.f_favail);
  if (system.f_files == 0 || static_cast<double>(files) <= inodes * 0.9) return {};
  return Error{
      ErrorCode::kIo,
      fmt::format("the test makes {} files, but the file system has {:.0f} inodes free; choose fewer "
                  "files or another `directory`",
                  files, inodes),
      shown_};
}

}  // namespace muster::storage
