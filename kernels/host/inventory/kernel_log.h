// SPDX-License-Identifier: Apache-2.0
// The kernel's log: errors of the hardware that it reported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/checks/log_line.h"
#include "runner/core/result.h"

namespace muster {

/// Lines of one kind in a kernel log.
struct LogErrors {
  uint64_t count = 0;  ///< events: one line each
  std::string last;    ///< the last such line, printable
};

/// The whole kernel log as far back as its ring buffer reaches, by syslog(2), so without a /dev/kmsg. Where
/// it is forbidden (dmesg_restrict, seccomp in a container) the error says what to do.
Result<std::string> readKernelLog();

/// The part of a log that was written at `since` (seconds since boot) or later; lines without a time count as
/// late.
std::string logSince(std::string_view log, double since);

/// The events of a kind, as readLogLine() tells them.
LogErrors findInLog(std::string_view log, LogKind kind);

}  // namespace muster
