// SPDX-License-Identifier: Apache-2.0
// Files and processes seen from Muster: bounded reads, atomic writes, digests, owned descriptors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

/// An owned file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// The whole of a regular file of at most `limit` bytes. Errors name the path and the reason: no such file, a
/// directory, a device or pipe, unreadable, larger than the limit.
Result<std::string> readFile(const std::filesystem::path& path, uint64_t limit = 64ull << 20);

/// Whether `name` may stand for a file below a folder: parts between '/', none empty, "." or "..", no NUL.
bool isNameBelow(std::string_view name);

/// Opens a regular file below an open folder for reading. No part of `name` may be a link, which whoever can
/// write there could turn to what only the caller can read.
Result<Fd> openBelow(int folder, const std::string& name);

/// openBelow() of a file whose path was found below `directory`; without one only the path's end may be no
/// link.
Result<Fd> openFound(const std::filesystem::path& path, const std::filesystem::path& directory);

/// readFile() of a file below `folder`, opened by openBelow().
Result<std::string> readFileBelow(const std::filesystem::path& folder, const std::string& name,
                                  uint64_t limit);

/// Whether a file must outlive a power cut from the moment it is written: yes for what nothing else could
/// bring back.
enum class Durable { kNo, kYes };

/// Replaces `path` as one step: temporary file beside it, fsync if durable, rename, fsync of the folder if
/// durable. On any failure the old file is untouched, the temporary one is removed, and the error names the
/// path and the reason (disk full, read-only). Root writes only where outputFolder() in trust.h says so.
Status writeFileAtomically(const std::filesystem::path& path, std::string_view content,
                           Durable durable = Durable::kYes);

/// Appends to an open descriptor and fsyncs it.
Status appendAndSync(int fd, std::string_view content, const std::filesystem::path& nameForErrors);

/// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256Hex(std::string_view data);

/// "errno text (ENAME)" of an errno value.
std::string errnoText(int error);

/// The folder of the running executable, from /proc/self/exe.
Result<std::filesystem::path> executableFolder();

}  // namespace muster
