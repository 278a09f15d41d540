// SPDX-License-Identifier: Apache-2.0
// The kernel's log: hardware errors that it reported since boot.
#include "kernels/host/inventory/kernel_log.h"

#include <sys/klog.h>

#include <algorithm>
#include <cerrno>

#include "runner/core/files.h"
#include "runner/core/text.h"

namespace muster {

namespace {

constexpr int kReadAll = 3;      // SYSLOG_ACTION_READ_ALL: does not consume
constexpr int kSizeBuffer = 10;  // SYSLOG_ACTION_SIZE_BUFFER

Error forbidden(int error) {
  return {ErrorCode::kIo,
          errnoText(error) +
              "; run as root or with CAP_SYSLOG, set kernel.dmesg_restrict=0, or set the parameter "
              "kernel_log = \"off\"",
          "kernel log"};
}

bool isHardwareError(std::string_view line) {
  const auto has = [line](std::string_view part) { return line.find(part) != std::string_view::npos; };
  return has("[Hardware Error]: Machine check") || has("[Hardware Error]: CPU ") ||
         has("event severity: fatal") || has("event severity: recoverable") || has("Memory failure: ") ||
         (has("EDAC ") && has(" UE ")) || (has("AER: ") && has("Uncorrect"));
}

}  // namespace

Result<std::string> readKernelLog() {
  const int size = klogctl(kSizeBuffer, nullptr, 0);
  if (size < 0) return forbidden(errno);
  std::string log(static_cast<size_t>(std::clamp(size, 1 << 12, 64 << 20)), '\0');
  const int got = klogctl(kReadAll, log.data(), static_cast<int>(log.size()));
  if (got < 0) return forbidden(errno);
  log.resize(static_cast<size_t>(got));
  return log;
}

HardwareErrors findHardwareErrors(std::string_view log) {
  HardwareErrors errors;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    if (isHardwareError(line)) {
      ++errors.count;
      errors.last = printable(line, 200);
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return errors;
}

}  // namespace muster
