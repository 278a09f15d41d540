// SPDX-License-Identifier: Apache-2.0
// The programs that run an NVLink fabric.
#include "kernels/cuda/inventory/fabric_services.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "runner/core/text.h"
#include "runner/system/child_process.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::cuda {
namespace {

constexpr const char* kLog = "/var/log/fabricmanager.log";
constexpr const char* kImexControl = "/usr/bin/nvidia-imex-ctl";
constexpr off_t kMostLog = off_t{4} << 20;
constexpr double kImexPatience = 5;  // seconds

/// The end of the log, from the beginning of a line.
Result<std::string> readEnd(const Root& root) {
  const Fd file(
      open((root.prefix() + kLog).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0)
    return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, errnoText(errno), kLog};
  if (!S_ISREG(info.st_mode) || (info.st_uid != 0 && info.st_uid != geteuid()) ||
      (info.st_mode & S_IWOTH) != 0)
    return Error{ErrorCode::kIo, "must be a regular file of root that not everybody can write", kLog};
  const off_t begin = std::max<off_t>(0, info.st_size - kMostLog);
  std::string text(static_cast<size_t>(info.st_size - begin), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got =
        pread(file.get(), text.data() + have, text.size() - have, begin + static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{ErrorCode::kIo, errnoText(errno), kLog};
    if (got == 0) break;  // it was cut meanwhile
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return begin == 0 ? text : text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
}

/// "[Jul 23 2024 07:53:55] [ERROR] [tid 841] ...", in local time.
bool isErrorSince(const std::string& line, std::time_t since) {
  std::tm time{};
  const char* rest = strptime(line.c_str(), "[%b %d %Y %H:%M:%S] ", &time);
  if (rest == nullptr) return false;
  const std::string_view level(rest);
  time.tm_isdst = -1;
  return (level.starts_with("[ERROR] ") || level.starts_with("[CRITICAL] ")) && mktime(&time) >= since;
}

Result<std::string> askImex(const Root& root) {
  MUSTER_TRY(const auto program, trustedPath(root.prefix() + kImexControl, "program"));
  ProgramSpec spec;
  spec.command = {program.string(), "-q"};
  spec.name = "nvidia-imex-ctl";
  spec.oneOutput = true;
  spec.mostOutput = 1u << 16;
  MUSTER_TRY(const ChildProcess ended, runProgram(std::move(spec), kImexPatience));
  return std::string(trim(ended.out()));
}

}  // namespace

void readFabricManagerLog(const Root& root, std::time_t since, Readings& out) {
  const auto log = readEnd(root);
  if (!log.ok() && log.error().code == ErrorCode::kNotFound) return;
  if (!log.ok())
    return out.values.push_back(
        {"fabric_manager_log", "text", "", 0, "not readable: " + log.error().text(), {}});
  Reading errors{"fabric_manager_errors", "count", "", 0, "", {}};
  for (const std::string& line : split(*log, '\n'))
    if (isErrorSince(line, since)) {
      ++errors.value;
      errors.text = printable(line, 200);
    }
  out.values.push_back(std::move(errors));
}

void readImex(const Root& root, Readings& out) {
  if (!root.exists(kImexControl)) return;
  const auto said = askImex(root);
  const bool ready = said.ok() && *said == "READY";
  out.values.push_back({"imex_ready",
                        "bool",
                        "",
                        ready ? 1.0 : 0.0,
                        ready ? "" : printable(said.ok() ? *said : said.error().text(), 200),
                        {}});
}

}  // namespace muster::cuda
