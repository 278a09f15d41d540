// SPDX-License-Identifier: Apache-2.0
// NCCL's environment and log.
#include "kernels/cuda/nccl/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runner/core/text.h"

namespace muster::cuda {
namespace {

/// Connections, variables and graphs. Not TUNING, a line for each collective, which small messages would
/// show.
constexpr const char* kSubsystems = "INIT,ENV,NET,GRAPH";

Status set(const std::string& name, const std::string& value) {
  if (setenv(name.c_str(), value.c_str(), 1) == 0) return {};
  return Error{ErrorCode::kIo, std::string("cannot set it: ") + std::strerror(errno), name};
}

std::string listed(const Settings& settings) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : settings) parts.push_back(name + "=" + value);
  return parts.empty() ? "none" : join(parts, " ");
}

}  // namespace

NcclProcess& NcclProcess::get() {
  static NcclProcess process;
  return process;
}

Status NcclProcess::openLog() {
  file_ = memfd_create("muster-nccl-log", MFD_CLOEXEC);
  if (file_ < 0)
    return Error{ErrorCode::kIo, std::string("no memory for NCCL's log: ") + std::strerror(errno),
                 "memfd_create"};
  MUSTER_CHECK_OK(set("NCCL_DEBUG", "INFO"));
  MUSTER_CHECK_OK(set("NCCL_DEBUG_SUBSYS", kSubsystems));
  return set("NCCL_DEBUG_FILE", "/proc/self/fd/" + std::to_string(file_));
}

Status NcclProcess::configure(const Settings& settings) {
  MUSTER_CHECK_OK(checkSettings(settings));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (configured_ && settings != settings_)
    return Error{ErrorCode::kUsage,
                 "NCCL reads its environment once a process, and this one has " + listed(settings_) +
                     ", expected " + listed(settings) + "; use a separate stage for each set of settings",
                 "settings"};
  if (configured_) return {};
  MUSTER_CHECK_OK(openLog());
  for (const char* own : {"NCCL_COMM_BLOCKING", "NCCL_COMM_SPLIT_SHARE_RESOURCES"}) unsetenv(own);
  for (const auto& [name, value] : settings) MUSTER_CHECK_OK(set(name, value));
  settings_ = settings;
  configured_ = true;
  return {};
}

Result<NcclLog> NcclProcess::log() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::array<char, 64 * 1024> piece{};
  while (file_ >= 0) {
    const ssize_t got = pread(file_, piece.data(), piece.size(), read_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Error{ErrorCode::kIo, std::string("cannot read it: ") + std::strerror(errno), "NCCL's log"};
    if (got == 0) break;
    reader_.feed({piece.data(), static_cast<size_t>(got)});
    read_ += got;
  }
  // NCCL writes on where it is; a hole in front of it takes no memory.
  if (read_ > 0) (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, read_);
  return reader_.log();
}

}  // namespace muster::cuda
