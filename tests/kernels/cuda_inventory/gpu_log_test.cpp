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
  std::string verdict;
  for (const auto& [name, count] : counts)
    for (uint64_t i = 0; i < count; ++i) verdict += (verdict.empty() ? "" : " and ") + name;
  return verdict.empty() ? "none" : verdict;
}

TEST(GpuLog, EveryDocumentedFormGivesItsVerdict) {
  std::ifstream file(sourceDir() / "tests/kernels/cuda_inventory/kernel_lines.txt");
  int events = 0, lookAlikes = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    std::string log = line.substr(tab + 1);
    for (size_t at = 0; (at = log.find("\\n", at)) != std::string::npos;) log.replace(at, 2, "\n");
    EXPECT_EQ(verdictOf(log), line.substr(0, tab)) << log;
    ++(line.starts_with("none") ? lookAlikes : events);
  }
  EXPECT_GE(events, 60);
  EXPECT_GE(lookAlikes, 20);
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

}  // namespace
}  // namespace muster::testing
