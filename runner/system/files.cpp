// SPDX-License-Identifier: Apache-2.0
// Reads, writes and hashes files.
#include "runner/system/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nettle/sha2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

/// What a person can do about a failed write.
std::string writeAdvice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space there or choose a directory on another disk";
    case EROFS:
    case EACCES:
    case EPERM:
      return "choose a writable directory";
    case ENOENT:
    case ENOTDIR:
      return "create the directory first";
    case EISDIR:
      return "remove the directory of that name or choose another name";
    default:
      return "check the disk and the path";
  }
}

Error writeError(const fs::path& path, int error) {
  return {ErrorCode::kIo, fmt::format("cannot write it: {}; {}", errnoText(error), writeAdvice(error)),
          path.string()};
}

/// Writes everything; 0 or the errno of the failure.
int writeAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

/// A file that is removed again unless it was renamed into place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& folder) {
    // Not mkostemp: its files are private whatever the umask says.
    for (int tries = 0; tries < kNameTries && !fd_.valid() && (tries == 0 || error_ == EEXIST); ++tries) {
      uint64_t number = 0;
      error_ = getrandom(&number, sizeof number, 0) == sizeof number ? 0 : errno;
      if (error_ != 0) return;
      name_ = (folder / fmt::format(".muster-tmp-{:016x}", number)).string();
      fd_.reset(open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
      error_ = fd_.valid() ? 0 : errno;
    }
  }
  ~TemporaryFile() {
    if (error_ == 0 && !renamed_) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] int error() const { return error_; }
  /// 0 or errno, for each step.
  int fill(std::string_view content, Durable durable) {
    if (const int error = writeAll(fd_.get(), content)) return error;
    if (durable == Durable::kYes && fsync(fd_.get()) != 0) return errno;
    // A network file system may tell only now that the disk is full.
    return close(fd_.release()) == 0 ? 0 : errno;
  }
  int renameTo(const fs::path& path) {
    if (rename(name_.c_str(), path.c_str()) != 0) return errno;
    renamed_ = true;
    return 0;
  }

 private:
  static constexpr int kNameTries = 100;
  std::string name_;
  Fd fd_;
  int error_ = 0;
  bool renamed_ = false;
};

/// Makes the rename itself durable. Some file systems cannot fsync a folder and say EINVAL: they need none.
int syncFolder(const fs::path& folder) {
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  if (fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) return errno;
  return 0;
}

Error readError(const fs::path& path, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  // The path or its permissions are what is wrong, and no disk.
  const bool forbidden = error == EACCES || error == EPERM || error == ELOOP || error == ENAMETOOLONG;
  return {missing     ? ErrorCode::kNotFound
          : forbidden ? ErrorCode::kUsage
                      : ErrorCode::kIo,
          "cannot read it: " + errnoText(error), path.string()};
}

Error tooLarge(const fs::path& path, uint64_t limit) {
  return {
      ErrorCode::kUsage,
      fmt::format("is larger than {}, which is the maximum", formatQuantity(static_cast<double>(limit), "B")),
      path.string()};
}

Status expectRegular(const struct stat& info, const fs::path& path) {
  if (S_ISREG(info.st_mode)) return {};
  const char* kind = S_ISDIR(info.st_mode)    ? "a folder"
                     : S_ISFIFO(info.st_mode) ? "a pipe"
                     : S_ISSOCK(info.st_mode) ? "a socket"
                                              : "a device";
  return Error{ErrorCode::kUsage, fmt::format("is {}; expected a regular file", kind), path.string()};
}

/// The whole of an open file; `path` is for errors.
Result<std::string> contentOf(int fd, const fs::path& path, uint64_t limit) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return readError(path, errno);
  MUSTER_CHECK_OK(expectRegular(info, path));
  if (static_cast<uint64_t>(info.st_size) > limit) return tooLarge(path, limit);
  std::string content;
  content.reserve(static_cast<size_t>(info.st_size));
  std::vector<char> buffer(size_t{64} * 1024);
  for (;;) {  // to the end, whatever fstat said: files of /proc and /sys lie about their size
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return readError(path, errno);
    if (n == 0) return content;
    if (content.size() + static_cast<size_t>(n) > limit) return tooLarge(path, limit);
    content.append(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace

void Fd::reset(int fd) {
  if (fd_ >= 0 && fd_ != fd) close(fd_);
  fd_ = fd;
}

Result<std::string> readFile(const fs::path& path, uint64_t limit) {
  // Non-blocking, so that opening a pipe without a writer does not wait for ever.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd.valid()) {
    const int error = errno;
    if (error == ENXIO && stat(path.c_str(), &info) == 0)
      MUSTER_CHECK_OK(expectRegular(info, path));  // a socket
    return readError(path, error);
  }
  return contentOf(fd.get(), path, limit);
}

bool isNameBelow(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) return false;
  const auto parts = split(std::string(name), '/');
  return std::none_of(parts.begin(), parts.end(),
                      [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
}

/// Without following a link or waiting for a pipe's writer.
constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

Result<Fd> openBelow(int folder, const std::string& name) {
  if (!isNameBelow(name)) return Error{ErrorCode::kProtocol, "is no name of a file below the folder", name};
  const std::vector<std::string> parts = split(name, '/');
  Fd held;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    Fd next(openat(folder, parts[i].c_str(), kToRead | O_DIRECTORY));
    if (!next.valid() && errno == ENOTDIR)  // so the kernel says of a link, too
      return Error{ErrorCode::kUsage, "cannot read it: " + errnoText(ENOTDIR), name};
    if (!next.valid()) return readError(name, errno);
    held = std::move(next);
    folder = held.get();
  }
  Fd file(openat(folder, parts.back().c_str(), kToRead));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) return readError(name, errno);
  MUSTER_CHECK_OK(expectRegular(info, name));
  return file;
}

Result<Fd> openFound(const fs::path& path, const fs::path& directory) {
  if (directory.empty()) {
    Fd file(open(path.c_str(), kToRead));
    struct stat info {};
    if (!file.valid() || fstat(file.get(), &info) != 0) return readError(path, errno);
    MUSTER_CHECK_OK(expectRegular(info, path));
    return file;
  }
  const Fd at(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid()) return readError(directory, errno);
  return openBelow(at.get(), path.lexically_relative(directory).string());
}

Result<std::string> readFileBelow(const fs::path& folder, const std::string& name, uint64_t limit) {
  const Fd at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid()) return readError(folder, errno);
  const auto file = openBelow(at.get(), name);
  if (!file.ok()) return Result<std::string>(file.error()).context("in " + folder.string());
  return contentOf(file->get(), folder / name, limit);
}

Status writeFileAtomically(const fs::path& path, std::string_view content, Durable durable) {
  const auto folder = outputFolder(path.has_parent_path() ? path.parent_path() : fs::path("."));
  if (!folder.ok() && folder.error().code == ErrorCode::kNotFound) return writeError(path, ENOENT);
  if (!folder.ok()) return folder.error();
  TemporaryFile temporary(*folder);
  if (temporary.error() != 0) return writeError(path, temporary.error());
  if (const int error = temporary.fill(content, durable)) return writeError(path, error);
  if (const int error = temporary.renameTo(*folder / path.filename())) return writeError(path, error);
  const int error = durable == Durable::kYes ? syncFolder(*folder) : 0;
  return error == 0 ? Status() : Status(writeError(path, error));
}

Status appendAndSync(int fd, std::string_view content, const fs::path& nameForErrors) {
  if (const int error = writeAll(fd, content)) return writeError(nameForErrors, error);
  if (fsync(fd) != 0) return writeError(nameForErrors, errno);
  return {};
}

std::string sha256Hex(std::string_view data) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, data.size(), reinterpret_cast<const uint8_t*>(data.data()));
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&context, sizeof digest, digest);
  std::string hex;
  for (const uint8_t byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string errnoText(int error) {
  const char* name = strerrorname_np(error);
  const char* description = strerrordesc_np(error);
  if (name == nullptr || description == nullptr) return fmt::format("unknown error (errno {})", error);
  return fmt::format("{} ({})", description, name);
}

Result<fs::path> executableFolder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return Error{
        ErrorCode::kIo,
        fmt::format("cannot find the running executable: {}; /proc must be mounted", error.message()),
        "/proc/self/exe"};
  return self.parent_path();
}

}  // namespace muster
