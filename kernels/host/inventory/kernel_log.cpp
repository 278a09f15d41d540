// SPDX-License-Identifier: Apache-2.0
// The kernel's log: errors of the hardware that it reported.
#include "kernels/host/inventory/kernel_log.h"

#include <sys/klog.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include "runner/core/text.h"
#include "runner/system/files.h"

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

/// The time of "<4>[   12.345678] text", in seconds since boot; nothing where printk wrote none.
std::optional<double> timeOf(std::string_view line) {
  if (line.starts_with('<')) line.remove_prefix(std::min(line.find('>'), line.size() - 1) + 1);
  if (!line.starts_with('[')) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(' ', 1), line.size()));
  double seconds = 0;
  const auto [after, error] = std::from_chars(line.data(), line.data() + line.size(), seconds);
  const bool closed = error == std::errc{} && after != line.data() + line.size() && *after == ']';
  return closed ? std::optional(seconds) : std::nullopt;
}

/// Calls `each` with every line.
template <typename Each>
void forEachLine(std::string_view log, Each each) {
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    each(log.substr(0, end));
    log.remove_prefix(std::min(end + 1, log.size()));
  }
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

std::string logSince(std::string_view log, double since) {
  std::string recent;
  forEachLine(log, [&](std::string_view line) {
    if (timeOf(line).value_or(since) >= since) recent.append(line).push_back('\n');
  });
  return recent;
}

LogErrors findInLog(std::string_view log, LogKind kind) {
  LogErrors errors;
  forEachLine(log, [&](std::string_view line) {
    if (readLogLine(line).kind != kind) return;
    ++errors.count;
    errors.last = printable(line, 200);
  });
  return errors;
}

}  // namespace muster
