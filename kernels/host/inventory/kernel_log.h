// SPDX-License-Identifier: Apache-2.0
// The kernel's log: errors of the hardware that it reported.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
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

/// What the kernel's ring buffer holds.
struct KernelLog {
  /// Since it was last cleared: a line for each message, "<6>[   12.345678] text", in which a line break is
  /// "\x0a".
  std::string lines;
  /// Seconds since boot; older messages were overwritten. By any user who can make the kernel write many.
  double from = 0;
};

/// From /dev/kmsg; where a container has none, by syslog(2), which takes what was cleared for overwritten.
/// Where both are forbidden (dmesg_restrict, seccomp in a container) the error says what to do.
Result<KernelLog> readKernelLog();

/// How /dev/kmsg is read: a message a call, or -1 with errno, which is EPIPE where messages were overwritten
/// before they were read; the next one is then the oldest that is left.
struct KernelLogDevice {
  std::function<ssize_t(char* to, size_t size)> read;
  std::function<void()> skipCleared;  ///< goes on behind what was cleared
};

/// What the device holds. Where messages are overwritten meanwhile, it begins with those that are left.
Result<KernelLog> readRecords(const KernelLogDevice& device);

/// The log as it grew over several looks.
class LogHistory {
 public:
  /// `last`: up to where an earlier history read the log.
  explicit LogHistory(double last = -1) : last_(last) {}
  /// Adds what a look found. Returns false where messages since the look before are missing.
  bool add(const KernelLog& look);
  /// What was overwritten since is still there, of the kinds that readLogLine() tells.
  [[nodiscard]] const std::string& lines() const { return lines_; }
  /// Time of the latest message, seconds since boot; negative: none yet.
  [[nodiscard]] double last() const { return last_; }

 private:
  std::string lines_;
  double last_;
};

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

/// How often links of HCAs were lost at `since` or later. A link counts as lost only if the log says that it
/// was up before: each start of a driver says "Link down" of a port whose link is still training.
LogErrors findLinkFlaps(std::string_view log, double since);

}  // namespace muster
