// SPDX-License-Identifier: Apache-2.0
// What lines of the kernel's log say: each documented form gives its verdict, and look-alikes give none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "kernels/cuda/inventory/xid_watch.h"
#include "kernels/host/inventory/kernel_log.h"
#include "tests/kernels/cuda_inventory/fake_nvml.h"

namespace muster::testing {
namespace {

/// The reading that counts this log, of which there must be one at most.
std::string verdictOf(const std::string& log) {
  std::map<std::string, uint64_t> counts;
  const cuda::GpuLog gpus = cuda::readGpuLog(log);
  for (const auto& [address, xids] : gpus.xids) {
    counts["xid_fatal"] += static_cast<uint64_t>(xids.fatal.count);
    counts["xid_application"] += static_cast<uint64_t>(xids.application.count);
    counts["xid_information"] += static_cast<uint64_t>(xids.information.count);
  }
  counts["sxid_fatal"] = static_cast<uint64_t>(gpus.sxids.fatal);
  counts["sxid_nonfatal"] = static_cast<uint64_t>(gpus.sxids.nonfatal);
  counts["hardware_error"] = findInLog(log, LogKind::kHardwareError).count;
  counts["hca_error"] = findInLog(log, LogKind::kHcaError).count;
  counts["hca_link_down"] = findInLog(log, LogKind::kHcaLinkDown).count;
  counts["hca_link_up"] = findInLog(log, LogKind::kHcaLinkUp).count;
  std::string verdict;
  for (const auto& [name, count] : counts)
    for (uint64_t i = 0; i < count; ++i) verdict += (verdict.empty() ? "" : " and ") + name;
  return verdict.empty() ? "none" : verdict;
}

/// The verdict that kernel_lines.txt wants, and the line.
struct KnownLine {
  std::string verdict, text;
};

std::vector<KnownLine> knownLines() {
  std::ifstream file(sourceDir() / "tests/kernels/cuda_inventory/kernel_lines.txt");
  std::vector<KnownLine> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const size_t tab = line.find('\t');
    EXPECT_NE(tab, std::string::npos) << line;
    lines.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  return lines;
}

TEST(GpuLog, EveryDocumentedFormGivesItsVerdict) {
  int events = 0, lookAlikes = 0;
  for (const auto& [verdict, text] : knownLines()) {
    EXPECT_EQ(verdictOf(text), verdict) << text;
    ++(verdict == "none" ? lookAlikes : events);
  }
  EXPECT_GE(events, 80);
  EXPECT_GE(lookAlikes, 50);
}

/// What the kernel says of a process: its name is the first 15 bytes of a form, and the rest of that form the
/// name of a file or of a control group.
TEST(GpuLog, NoFormIsCompletedByTheNamesOfAProcessAndItsFile) {
  constexpr size_t kLongestName = 15;
  int tried = 0;
  for (const auto& [verdict, text] : knownLines()) {
    if (verdict == "none" || text.starts_with("[ ") || text.starts_with('<') || text.starts_with("Nov"))
      continue;
    for (size_t length = 0; length <= kLongestName; ++length) {
      const std::string name = text.substr(0, length);
      for (const std::string& begin : {name, "\\x0a" + name})
        for (const std::string& file : {text, text.substr(length), "\\x0a" + text})
          for (const std::string& report :
               {begin + "[1]: segfault at 0 ip 0000000000001129 sp 00007ffd9b9e3058 error 6 in " + file,
                begin + "[1] general protection fault ip:1129 sp:7ffc error:0 in " + file,
                "traps: " + begin + "[1] trap invalid opcode ip:1129 sp:7ffc error:0 in " + file,
                begin + ": page allocation failure: order:4, mode:0xcc0(GFP_KERNEL),cpuset=" + file,
                begin + " invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, cpuset=" + file,
                begin + " cpuset=" + file + " mems_allowed=0", begin + " (1): drop_caches: 3 " + file,
                begin + "/1: fatal signal 11. " + file}) {
            EXPECT_EQ(verdictOf("<6>[ 3888.804123] " + report), "none") << report;
            ++tried;
          }
    }
  }
  EXPECT_GE(tried, 70 * 16 * 48);
}

TEST(GpuLog, BelongsToTheGpuThatItNames) {
  const auto counts = cuda::readGpuLog(
                          "[1] NVRM: Xid (PCI:0000:4E:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
                          "[1] NVRM: Xid (PCI:0000:4e:00): 31, pid=1, MMU Fault\n"
                          "[2] NVRM: Xid (0000:18:00): 62, an old form\n"
                          "[3] NVRM: Xid (PCI:0000:60:00 GPU-I:05): 13, in a MIG instance\n")
                          .xids;
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts.at("0000:4e:00").fatal.count, 1);
  EXPECT_EQ(counts.at("0000:4e:00").fatal.last, 79);
  EXPECT_EQ(counts.at("0000:4e:00").application.count, 1);
  EXPECT_EQ(counts.at("0000:18:00").fatal.count, 1);
  EXPECT_EQ(counts.at("0000:60:00").application.count, 1);
}

TEST(GpuLog, TheLossOfAGpuCountsOnceInWhateverOrderAndWords) {
  const std::string words = "NVRM: GPU 0000:4e:00.0: GPU has fallen off the bus.\n";
  const std::string xid = "NVRM: Xid (PCI:0000:4e:00): 79, pid=1, GPU has fallen off the bus.\n";
  for (const std::string& log : {words, xid, words + xid, xid + words, words + words, xid + words + words})
    EXPECT_EQ(cuda::readGpuLog(log).xids.at("0000:4e:00").fatal.count, 1) << log;
  EXPECT_EQ(cuda::readGpuLog(xid + words + xid).xids.at("0000:4e:00").fatal.count, 2)
      << "it came back between";
}

TEST(GpuLog, SxidsAreOfTheNode) {
  FakeNode node;
  node.kernelLog =
      "[ 1.0] nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
      "[ 1.1] nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Severity 1 Engine instance 30\n"
      "[ 1.2] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 22013, Non-fatal, Link 44 Minion Link DLREQ "
      "interrupt\n";
  const auto inventory = node.open();
  const auto readings = inventory->health(0, "idle");
  ASSERT_TRUE(readings.ok());
  EXPECT_EQ(valueOf(*readings, reading::kSxidFatal, ""), 1);
  EXPECT_EQ(valueOf(*readings, reading::kSxidNonfatal, ""), 1);
  EXPECT_EQ(readingOf(*readings, reading::kSxidFatal, "")->text,
            "SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up");
  node.kernelLogForbidden = true;
  const auto blind = node.open()->health(0, "idle");
  EXPECT_EQ(readingOf(*blind, reading::kSxidFatal, ""), nullptr) << "not seen is not none";
}

TEST(GpuLog, WhatIsOlderThanTheWindowIsHistory) {
  FakeNode node;
  node.uptime = 10000;
  node.kernelLog =
      "<3>[ 2799.9] NVRM: Xid (PCI:0000:4e:00): 79, pid=1, GPU has fallen off the bus.\n"
      "<3>[ 2801.0] NVRM: Xid (PCI:0000:60:00): 48, pid=1, DBE\n"
      "<3>[  100.0] mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: bea0000000000108\n"
      "NVRM: Xid (PCI:0000:18:00): 48, without a time\n";
  const auto inventory = node.open();
  const auto counts = [&](const std::unique_ptr<cuda::CudaInventory>& of) {
    const auto readings = of->health(0, "idle");
    return std::vector<double>{valueOf(*readings, reading::kXidFatal, "gpu3"),
                               valueOf(*readings, reading::kXidFatal, "gpu4"),
                               valueOf(*readings, reading::kXidFatal, "gpu0")};
  };
  EXPECT_EQ(counts(inventory), (std::vector<double>{0, 1, 1})) << "two hours";
  EXPECT_EQ(valueOf(*inventory->surroundings("."), "hardware_errors", ""), 0);
  node.uptime = 20000;
  EXPECT_EQ(counts(inventory), (std::vector<double>{0, 1, 1})) << "what counted once stays";
  node.uptime = 10000;
  const auto longer = node.open();
  longer->setLogWindow(3 * 3600);
  EXPECT_EQ(counts(longer), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(valueOf(*longer->surroundings("."), "hardware_errors", ""), 1);
  const auto none = node.open();
  none->setLogWindow(0);
  EXPECT_EQ(counts(none), (std::vector<double>{0, 0, 1}));
}

TEST(GpuLog, XidsBetweenTwoProcessesAreThoseOfTheSecond) {
  FakeNode node;
  node.kernelLog = "<3>[   50.0] NVRM: Xid (PCI:0000:4e:00): 79, pid=1, GPU has fallen off the bus.\n";
  const auto xids = [](cuda::CudaInventory& of) {
    const auto readings = of.health(0, "idle");
    return valueOf(*readings, reading::kXidFatal, "gpu3");
  };
  const auto first = node.open();
  EXPECT_EQ(xids(*first), 1);
  node.kernelLog += "<3>[   51.0] NVRM: Xid (PCI:0000:4e:00): 48, pid=1, DBE\n";
  const auto second = node.open();
  second->resumeLog(first->logPosition());
  EXPECT_EQ(xids(*second), 1);
}

}  // namespace
}  // namespace muster::testing
