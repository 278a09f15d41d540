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

/// The whole kernel log as far back as its ring buffer reaches, since it was last cleared: a line for each
/// message, "<6>[   12.345678] text", in which a line break is "\x0a". From /dev/kmsg; where a container has
/// none, by syslog(2). Where both are forbidden (dmesg_restrict, seccomp in a container) the error says what
/// to do.
Result<std::string> readKernelLog();

/// The line of a record as /dev/kmsg gives it; empty where the record goes on with an earlier message.
std::string lineOfRecord(std::string_view record);

/// What syslog(2) gives, which begins each line of a message alike: lines that follow each other with the
/// same level and time are one message, the rest of which cannot count. An error where lines have no time.
Result<std::string> linesOfSyslog(std::string_view log);

/// The part of a log that was written at `since` (seconds since boot) or later; lines without a time count as
/// late.
std::string logSince(std::string_view log, double since);

/// The events of a kind, as readLogLine() tells them.
LogErrors findInLog(std::string_view log, LogKind kind);

}  // namespace muster
