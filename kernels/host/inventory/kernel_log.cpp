// SPDX-License-Identifier: Apache-2.0
// The kernel's log: errors of the hardware that it reported.
#include "kernels/host/inventory/kernel_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>

#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {

namespace {

constexpr int kReadAll = 3;      // SYSLOG_ACTION_READ_ALL: does not consume
constexpr int kSizeBuffer = 10;  // SYSLOG_ACTION_SIZE_BUFFER
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr std::string_view kLineBreak = "\\x0a";  // as /dev/kmsg writes it

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

/// The time of a record as /dev/kmsg gives it; 0 where it has none.
uint64_t microseconds(std::string_view record) {
  const std::vector<std::string> head = split(record.substr(0, record.find(';')), ',');
  uint64_t time = 0;
  if (head.size() > 2) std::from_chars(head[2].data(), head[2].data() + head[2].size(), time);
  return time;
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

/// /dev/kmsg; not valid where it cannot be opened or is something else.
Fd openRecords() {
  constexpr unsigned kMajor = 1, kMinor = 11;
  Fd file(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISCHR(info.st_mode) ||
      info.st_rdev != makedev(kMajor, kMinor) || lseek(file.get(), 0, SEEK_DATA) < 0 ||
      lseek(file.get(), 0, SEEK_SET) < 0)
    return Fd();
  return file;
}

/// A message of /dev/kmsg.
struct LogRecord {
  std::string text;     ///< empty after the last
  bool missed = false;  ///< those that should have come before it were overwritten; it is the oldest now
};

Result<LogRecord> nextRecord(const KernelLogDevice& device) {
  std::array<char, 1 << 14> text;  // the kernel's longest has 8 KiB
  bool missed = false;
  while (true) {
    const ssize_t got = device.read(text.data(), text.size());
    if (got >= 0) return LogRecord{std::string(text.data(), static_cast<size_t>(got)), missed};
    if (errno == EAGAIN) return LogRecord{"", missed};
    if (errno != EPIPE && errno != EINTR) return forbidden(errno);
    missed = missed || errno == EPIPE;
  }
}

}  // namespace

Result<KernelLog> readRecords(const KernelLogDevice& device) {
  KernelLog log;
  MUSTER_TRY(const LogRecord oldest, nextRecord(device));
  log.from = microseconds(oldest.text) * 1e-6;
  device.skipCleared();
  for (size_t taken = 0; taken < kMostBytes;) {
    MUSTER_TRY(const LogRecord record, nextRecord(device));
    if (record.missed && record.text.empty())
      return Error{ErrorCode::kIo, "messages are overwritten before they can be read", "kernel log"};
    if (record.missed) log = {"", microseconds(record.text) * 1e-6};
    if (record.text.empty()) break;
    taken += record.text.size();
    log.lines += lineOfRecord(record.text);
  }
  return log;
}

std::string lineOfRecord(std::string_view record) {
  // "LEVEL,NUMBER,MICROSECONDS,FLAGS[,...];TEXT", and lines of details.
  const size_t text = record.find(';');
  if (text == std::string_view::npos) return "";
  const std::vector<std::string> head = split(record.substr(0, text), ',');
  if (head.size() < 4 || head[3] != "-") return "";
  const uint64_t time = microseconds(record);
  record.remove_prefix(text + 1);
  return fmt::format("<{}>[{:5}.{:06}] {}\n", head[0], time / 1000000, time % 1000000,
                     record.substr(0, record.find('\n')));
}

Result<std::string> linesOfSyslog(std::string_view log) {
  std::string lines, last;
  bool timed = true;
  forEachLine(log, [&](std::string_view line) {
    timed = timed && timeOf(line).has_value();
    const std::string head(line.substr(0, line.find(']')));
    if (!lines.empty() && head == last) {
      lines.pop_back();
      lines += kLineBreak;
    }
    last = head;
    lines.append(line).push_back('\n');
  });
  if (timed) return lines;
  return Error{
      ErrorCode::kIo,
      "/dev/kmsg is not readable, and without printk.time=1 messages cannot be told apart from names "
      "in them; set it, pass /dev/kmsg to the container, or set the parameter kernel_log = \"off\"",
      "kernel log"};
}

Result<KernelLog> readKernelLog() {
  if (const Fd records = openRecords(); records.valid())
    return readRecords({[&](char* to, size_t size) { return read(records.get(), to, size); },
                        [&] { (void)lseek(records.get(), 0, SEEK_DATA); }});
  const int size = klogctl(kSizeBuffer, nullptr, 0);
  if (size < 0) return forbidden(errno);
  std::string log(std::clamp(static_cast<size_t>(size), size_t{1} << 12, kMostBytes), '\0');
  const int got = klogctl(kReadAll, log.data(), static_cast<int>(log.size()));
  if (got < 0) return forbidden(errno);
  log.resize(static_cast<size_t>(got));
  MUSTER_TRY(std::string lines, linesOfSyslog(log));
  const double from = timeOf(lines.substr(0, lines.find('\n'))).value_or(0);
  return KernelLog{std::move(lines), from};
}

bool LogHistory::add(const KernelLog& look) {
  const bool whole = last_ < 0 || look.from <= last_;
  std::string lines;
  forEachLine(lines_, [&](std::string_view line) {
    if (timeOf(line).value_or(look.from) < look.from && readLogLine(line).kind != LogKind::kNone)
      lines.append(line).push_back('\n');
  });
  lines_ = std::move(lines) + look.lines;
  forEachLine(look.lines,
              [&](std::string_view line) { last_ = std::max(last_, timeOf(line).value_or(last_)); });
  last_ = std::max(last_, look.from);
  return whole;
}

std::string logSince(std::string_view log, double since) {
  std::string recent;
  forEachLine(log, [&](std::string_view line) {
    if (timeOf(line).value_or(since) >= since) recent.append(line).push_back('\n');
  });
  return recent;
}

LogErrors findLinkFlaps(std::string_view log, double since) {
  LogErrors flaps;
  std::set<std::string> up;
  forEachLine(log, [&](std::string_view line) {
    const LogLine found = readLogLine(line);
    if (found.kind == LogKind::kHcaLinkUp) up.insert(found.address);
    if (found.kind != LogKind::kHcaLinkDown || up.erase(found.address) == 0) return;
    if (timeOf(line).value_or(since) < since) return;
    ++flaps.count;
    flaps.last = printable(line, 200);
  });
  return flaps;
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
