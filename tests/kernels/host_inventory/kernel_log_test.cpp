// SPDX-License-Identifier: Apache-2.0
// Hardware errors in kernel logs.
#include "kernels/host/inventory/kernel_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

namespace muster {
namespace {

LogErrors hardwareErrors(std::string_view log) {
  return findInLog(log, LogKind::kHardwareError);
}

TEST(KernelLog, CountsEventsAndKeepsTheLast) {
  const LogErrors errors = hardwareErrors(
      "<6>[    0.000000] Linux version 6.1\n"
      "<2>[   10.000000] mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: bea0000000000108\n"
      "<3>[   11.000000] mce: [Hardware Error]: TSC 0 ADDR 1ffffa\n"
      "<3>[   12.000000] EDAC MC0: 1 UE memory read error on CPU_SrcID#0\n"
      "<3>[   13.000000] Memory failure: 0x1234: recovery action for dirty LRU page: Recovered\n"
      "<3>[   14.000000] pcieport 0000:17:00.0: AER: Uncorrected (Fatal) error received");
  EXPECT_EQ(errors.count, 4u);
  EXPECT_NE(errors.last.find("0000:17:00.0"), std::string::npos);
}

TEST(KernelLog, CorrectedErrorsAndPlainLinesAreNone) {
  EXPECT_EQ(
      hardwareErrors("EDAC MC0: 1 CE memory read error\nAER: Corrected error received\nmce: CPU0 supports\n")
          .count,
      0u);
  EXPECT_EQ(hardwareErrors("").count, 0u);
}

TEST(KernelLog, HostileLinesArePrintable) {
  const LogErrors errors =
      hardwareErrors(std::string("Memory failure: 0x1\x1b[2J\xff") + std::string(9000, 'x'));
  EXPECT_EQ(errors.count, 1u);
  EXPECT_LE(errors.last.size(), 220u);
  EXPECT_EQ(errors.last.find('\x1b'), std::string::npos);
}

TEST(KernelLog, LinesOlderThanItsBeginAreLeftOut) {
  const std::string log =
      "<6>[    9.999999] old\n<6>[   10.000000] new\n[  11.5][ T12] with a thread\nwithout a time\n[many] no "
      "time\n<";
  EXPECT_EQ(logSince(log, 10),
            "<6>[   10.000000] new\n[  11.5][ T12] with a thread\nwithout a time\n[many] no time\n<\n");
  EXPECT_EQ(logSince("", 10), "");
}

TEST(KernelLog, ALinkFlapsWhenItGoesDownAfterItWasUp) {
  const std::string log =
      "<6>[    5.2] mlx5_core 0000:17:00.0 ens1f0np0: Link down\n"
      "<6>[    8.1] mlx5_core 0000:17:00.0 ens1f0np0: Link up\n"
      "<6>[    8.2] mlx5_core 0000:17:00.1 ens1f1np1: Link down\n"
      "<6>[  100.0] mlx5_core 0000:17:00.0 ens1f0np0: Link down\n"
      "<6>[  101.0] mlx5_core 0000:17:00.0 ens1f0np0: Link up\n"
      "<6>[  200.0] mlx5_core 0000:17:00.0 ens1f0np0: Link down\n"
      "<6>[  200.1] mlx5_core 0000:17:00.0 ens1f0np0: Link down\n"
      "<12>[  201.0] mlx5_core 0000:17:00.0 ens1f0np0: Link up\n"
      "<6>[  202.0] mlx5_core 0000:17:00.0 ens1f0np0: Link down\n";
  EXPECT_EQ(findLinkFlaps(log, 0).count, 2u) << "a user's own line changes nothing";
  const LogErrors recent = findLinkFlaps(log, 150);
  EXPECT_EQ(recent.count, 1u) << "that it was up is known from before the window";
  EXPECT_EQ(recent.last, "<6>[  200.0] mlx5_core 0000:17:00.0 ens1f0np0: Link down");
  EXPECT_EQ(findLinkFlaps(log, 250).count, 0u);
}

TEST(KernelLog, OneRecordIsOneLineWhateverNamesItHolds) {
  EXPECT_EQ(lineOfRecord("6,339,5140900,-;NET: Registered\n SUBSYSTEM=net\n DEVICE=n3\n"),
            "<6>[    5.140900] NET: Registered\n");
  EXPECT_EQ(lineOfRecord("3,340,3888804123,-,caller=T77;a\\x0ab"), "<3>[ 3888.804123] a\\x0ab\n");
  EXPECT_EQ(lineOfRecord("12,341,1,-;of a user"), "<12>[    0.000001] of a user\n");
  EXPECT_EQ(lineOfRecord("6,342,1,c;the rest of another"), "");
  EXPECT_EQ(lineOfRecord("6,343"), "");
  EXPECT_EQ(lineOfRecord(""), "");
}

TEST(KernelLog, WhatFollowsALineBreakIsNoMessageOfItsOwn) {
  const std::string_view forged = "mlx5_core 0000:1a:00.0: Fatal error 3 detected";
  for (const char* caller : {"", "[   T77]"}) {
    const std::string head = fmt::format("<6>[ 3888.804123]{} ", caller);
    const std::string crash = fmt::format(
        "{0}\n{0}x[7]: segfault at 0 ip 0 sp 0 error 6 in \n{0}{1}[1129,5000+1000]\n", head, forged);
    const auto lines = linesOfSyslog(crash + "<6>[ 3888.804124] " + std::string(forged) + "\n");
    ASSERT_TRUE(lines.ok());
    EXPECT_EQ(std::count(lines->begin(), lines->end(), '\n'), 2) << *lines;
    EXPECT_EQ(findInLog(*lines, LogKind::kHcaError).count, 1u) << "its own is one";
  }
  EXPECT_EQ(*linesOfSyslog(""), "");
  EXPECT_FALSE(linesOfSyslog("\n").ok());
  const auto timeless = linesOfSyslog("<6>x[7]: segfault in \n<6>" + std::string(forged) + "\n");
  ASSERT_FALSE(timeless.ok());
  EXPECT_NE(timeless.error().message.find("printk.time=1"), std::string::npos);
}

/// A device whose reads come to these: messages, or "" for EPIPE.
KernelLogDevice deviceOf(std::vector<std::string> reads) {
  auto next = std::make_shared<std::vector<std::string>>(std::move(reads));
  return {[next](char* to, size_t size) -> ssize_t {
            errno = EAGAIN;
            if (next->empty()) return -1;
            const std::string text = next->front();
            next->erase(next->begin());
            errno = EPIPE;
            return text.empty() ? -1 : static_cast<ssize_t>(text.copy(to, size));
          },
          [] {}};
}

TEST(KernelLog, BeginsWithWhatIsLeftWhereMessagesAreOverwrittenMeanwhile) {
  const auto log = [](std::vector<std::string> reads) {
    return readRecords(deviceOf(std::move(reads))).value();
  };
  EXPECT_EQ(log({}).from, 0);
  // The first read is of the oldest message.
  const KernelLog whole = log({"6,1,1000000,-;a", "6,1,1000000,-;a", "6,2,2000000,-;b"});
  EXPECT_EQ(whole.from, 1);
  EXPECT_EQ(whole.lines, "<6>[    1.000000] a\n<6>[    2.000000] b\n");
  // Cleared behind 2; then all of it is overwritten while it is read.
  EXPECT_EQ(log({"6,1,1000000,-;a", "6,3,3000000,-;c"}).from, 1);
  const KernelLog flooded =
      log({"6,1,1000000,-;a", "6,1,1000000,-;a", "", "6,8,8000000,-;h", "6,9,9000000,-;i"});
  EXPECT_EQ(flooded.from, 8);
  EXPECT_EQ(flooded.lines, "<6>[    8.000000] h\n<6>[    9.000000] i\n");
  EXPECT_FALSE(readRecords(deviceOf({"6,1,1000000,-;a", ""})).ok());
}

TEST(KernelLog, IsReadOrTheErrorSaysWhatToDo) {
  const auto log = readKernelLog();
  if (log.ok()) {
    EXPECT_LE(hardwareErrors(log->lines).count, log->lines.size());
  } else {
    EXPECT_NE(log.error().message.find("CAP_SYSLOG"), std::string::npos);
  }
}

}  // namespace
}  // namespace muster
