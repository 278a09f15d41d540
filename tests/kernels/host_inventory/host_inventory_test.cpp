// SPDX-License-Identifier: Apache-2.0
// The inventory as a whole, of made-up machines and of this one.
#include "kernels/host/inventory/host_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>

#include "kernels/host/inventory/cpu.h"
#include "kernels/host/inventory/inventory.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

HostSources sourcesOf(const TempDir& dir) {
  return {Root(dir.path()), [] { return KernelLog(); }, "", 1, nullptr, [] { return 0.0; }};
}

const Reading* find(const Readings& readings, const std::string& name) {
  const auto found = std::find_if(readings.values.begin(), readings.values.end(),
                                  [&](const Reading& reading) { return reading.name == name; });
  return found == readings.values.end() ? nullptr : &*found;
}

bool isUnreadable(const Readings& readings, const std::string& name) {
  return std::any_of(readings.unreadable.begin(), readings.unreadable.end(),
                     [&](const UnreadableSource& source) { return source.name == name; });
}

TEST(HostInventory, ThisMachineHasDevicesWithPeaks) {
  const auto devices = makeHostInventory()->devices();
  ASSERT_TRUE(devices.ok()) << devices.error().text();
  ASSERT_FALSE(devices->empty());
  const DeviceInfo& first = devices->front();
  EXPECT_EQ(first.id, "cpu0");
  EXPECT_EQ(first.kind, "cpu");
  EXPECT_GT(first.memoryBytes, 1u << 20);
  EXPECT_GT(first.peaks.at("flops.f32"), 1e9);
  EXPECT_EQ(first.peaks.count("memory_bandwidth"), 0u) << "nobody tells, so nothing is invented";
}

TEST(HostInventory, ANodePerNumaNode) {
  HostSources sources = machineSources();
  sources.syntheticTopology = "package:4 [numa] core:2 pu:2";
  const auto devices = HostInventory(std::move(sources)).devices();
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 4u);
  EXPECT_EQ(devices->at(3).id, "cpu3");
  EXPECT_EQ(devices->at(3).numaNode, 3);
  EXPECT_EQ(devices->at(3).cpus, (std::vector<int>{12, 13, 14, 15}));
}

TEST(HostInventory, TheNodeIsOneObjectOfThreeParts) {
  const auto node = makeHostInventory()->node();
  ASSERT_TRUE(node.ok());
  EXPECT_TRUE(node->at("host").is_object());
  EXPECT_TRUE(node->at("software").is_object());
  EXPECT_TRUE(node->at("nics").is_array());
}

TEST(HostInventory, SharesOfCpuTimeComeFromTheSecondLookOn) {
  HostInventory inventory(machineSources());
  EXPECT_EQ(find(*inventory.health(0, "idle"), reading::kBusyShare), nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  const auto second = inventory.health(0, "idle");
  ASSERT_NE(find(*second, reading::kBusyShare), nullptr);
  EXPECT_GE(find(*second, reading::kBusyShare)->value, 0);
  EXPECT_NE(find(*second, reading::kCgroupThrottled), nullptr);
}

TEST(HostInventory, WhatCannotBeReadIsSaidAndNotLeftOut) {
  const TempDir empty;
  HostSources sources = sourcesOf(empty);
  sources.kernelLog = [] { return Result<KernelLog>(Error{ErrorCode::kIo, "forbidden", "kernel log"}); };
  HostInventory inventory(std::move(sources));
  EXPECT_TRUE(isUnreadable(*inventory.health(0, "idle"), "processes"));
  const auto surroundings = inventory.surroundings("/no/such/folder");
  ASSERT_TRUE(surroundings.ok());
  EXPECT_TRUE(isUnreadable(*surroundings, "kernel log"));
  EXPECT_TRUE(isUnreadable(*surroundings, "disk space"));
  EXPECT_TRUE(isUnreadable(*surroundings, "clock source"));
  EXPECT_TRUE(isUnreadable(*surroundings, "memory size"));
  EXPECT_EQ(find(*surroundings, "hardware_errors"), nullptr);
}

/// The reason why the log cannot be read; empty: it can.
std::string logProblem(const Readings& readings) {
  for (const UnreadableSource& source : readings.unreadable)
    if (source.name == "kernel log") return source.reason;
  return "";
}

TEST(HostInventory, ALogThatWasOverwrittenIsNoCleanOne) {
  const TempDir empty;
  for (const auto& [from, window, whole] : {std::tuple{0.0, 7200.0, true},
                                            {2000.0, 7200.0, true},
                                            {2801.0, 7200.0, false},
                                            {9990.0, 7200.0, false},
                                            {9990.0, 5.0, true},
                                            {9999.0, 0.0, true}}) {
    HostSources sources = sourcesOf(empty);
    sources.uptime = [] { return 10000.0; };
    sources.kernelLog = [from = from] { return KernelLog{"<6>[ 9999.500000] usb 1-1: new device\n", from}; };
    HostInventory inventory(std::move(sources));
    inventory.setLogWindow(window);
    const std::string problem = logProblem(*inventory.surroundings("/"));
    EXPECT_EQ(problem.empty(), whole) << from << " " << window << ": " << problem;
    EXPECT_EQ(problem.find("what is older was overwritten") != std::string::npos, !whole) << problem;
  }
}

TEST(HostInventory, MessagesBetweenTwoLooksAreKeptOrMissed) {
  const TempDir empty;
  const std::string error = "<3>[  100.000000] EDAC MC0: 1 UE memory read error on CPU_SrcID#0\n";
  KernelLog log{error + "<6>[  101.000000] a\n", 90};
  HostSources sources = sourcesOf(empty);
  sources.uptime = [] { return 102.0; };
  sources.kernelLog = [&log] { return log; };
  HostInventory inventory(std::move(sources));
  const auto errors = [&] { return find(*inventory.surroundings("/"), "hardware_errors")->value; };
  EXPECT_EQ(errors(), 1);
  log = {"<6>[  101.000000] a\n" +
             std::string("<3>[  103.000000] EDAC MC0: 1 UE memory read error on any memory\n"),
         101};
  EXPECT_EQ(errors(), 2) << "the first one was overwritten";
  EXPECT_EQ(inventory.missedLog(), "");
  log = {"<6>[  105.000000] b\n", 104};
  EXPECT_EQ(errors(), 2);
  EXPECT_THAT(inventory.missedLog(), HasSubstr("overwritten between two looks"));
}

TEST(HostInventory, ALogIsReadFromWhereAnEarlierProcessLeftIt) {
  const TempDir empty;
  const auto error = [](const std::string& time) {
    return "<3>[  " + time + "] EDAC MC0: 1 UE memory read error on CPU_SrcID#0\n";
  };
  KernelLog log{error("100.000000") + error("100.000001"), 90};
  const auto open = [&] {
    HostSources sources = sourcesOf(empty);
    sources.uptime = [] { return 10.0; };  // the log's clock and this one may have drifted apart
    sources.kernelLog = [&log] { return log; };
    return std::make_unique<HostInventory>(std::move(sources));
  };
  const auto errors = [](HostInventory& of) { return find(*of.surroundings("/"), "hardware_errors")->value; };
  const auto first = open();
  EXPECT_LT(first->logPosition(), 0) << "not looked at yet";
  EXPECT_EQ(errors(*first), 2);
  log.lines += error("100.000002");
  const auto next = open();
  next->resumeLog(first->logPosition());
  EXPECT_EQ(errors(*next), 1);
  EXPECT_EQ(next->missedLog(), "");
  log = {error("105.000000"), 104};
  const auto late = open();
  late->resumeLog(first->logPosition());
  EXPECT_EQ(errors(*late), 1);
  EXPECT_THAT(late->missedLog(), HasSubstr("overwritten between two looks"));
}

TEST(Surroundings, TellLinkFlapsWithinTheWindowAndHcasBelowTheirPcieLink) {
  const TempDir dir;
  const std::string hca = "sys/class/infiniband/mlx5_0/";
  dir.write(hca + "ports/1/state", "4: ACTIVE\n");
  for (const auto& [file, value] : {std::pair{"current_link_width", "8"},
                                    {"max_link_width", "16"},
                                    {"current_link_speed", "32.0 GT/s PCIe"},
                                    {"max_link_speed", "32.0 GT/s PCIe"}})
    dir.write(hca + "device/" + file, value);
  HostSources sources = sourcesOf(dir);
  sources.uptime = [] { return 10000.0; };
  sources.kernelLog = [] {
    return KernelLog{
        "<6>[ 10.0] mlx5_core 0000:17:00.0 ens1f0np0: Link up\n"
        "<6>[ 20.0] mlx5_core 0000:17:00.0 ens1f0np0: Link down\n"
        "<6>[ 30.0] mlx5_core 0000:17:00.0 ens1f0np0: Link up\n"
        "<6>[ 9000.0] mlx5_core 0000:17:00.0 ens1f0np0: Link down\n"};
  };
  const auto readings = HostInventory(std::move(sources)).surroundings("/");
  ASSERT_NE(find(*readings, "hca_link_flaps"), nullptr);
  EXPECT_EQ(find(*readings, "hca_link_flaps")->value, 1);
  EXPECT_THAT(find(*readings, "hca_link_flaps")->text, HasSubstr("9000.0"));
  ASSERT_NE(find(*readings, "hca_pcie_share"), nullptr);
  EXPECT_EQ(find(*readings, "hca_pcie_share")->value, 0.5);
}

TEST(Surroundings, AQuotaIsToldAsRatioAndInWords) {
  const TempDir dir;
  const size_t cpus = affinity().size();
  dir.write("proc/self/cgroup", "1:cpu:/half\n");
  dir.write("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  dir.write("sys/fs/cgroup/cpu/half/cpu.cfs_quota_us", std::to_string(cpus * 50000));
  dir.write("sys/fs/cgroup/cpu/half/cpu.cfs_period_us", "100000");
  const auto readings = HostInventory(sourcesOf(dir)).surroundings("/");
  ASSERT_NE(find(*readings, "cpu_quota_ratio"), nullptr);
  EXPECT_DOUBLE_EQ(find(*readings, "cpu_quota_ratio")->value, 0.5);
  EXPECT_EQ(find(*readings, "cpu_quota_ratio")->labels.at("cgroup"), "/sys/fs/cgroup/cpu/half");
  EXPECT_THAT(find(*readings, "cpu_quota_source")->text, HasSubstr("cgroup cpu quota 50% of"));
  EXPECT_THAT(find(*readings, "cpu_quota_source")->text, HasSubstr("at /sys/fs/cgroup/cpu/half"));
}

TEST(Surroundings, ASlowClockSourceIsNamed) {
  const TempDir dir;
  dir.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  const auto readings = HostInventory(sourcesOf(dir)).surroundings("/");
  ASSERT_NE(find(*readings, "clock_source_fast"), nullptr);
  EXPECT_EQ(find(*readings, "clock_source_fast")->value, 0);
  EXPECT_EQ(find(*readings, "clock_source_fast")->labels.at("source"), "hpet");
}

TEST(Surroundings, WithoutEdacNothingIsKnownOfMemoryErrors) {
  const TempDir dir;
  const auto readings = HostInventory(sourcesOf(dir)).surroundings("/");
  EXPECT_EQ(find(*readings, "memory_errors_uncorrected"), nullptr);
  EXPECT_THAT(find(*readings, "memory_error_counters")->text, HasSubstr("nothing is known"));
}

TEST(Surroundings, ThisMachineIsReadInFull) {
  HostSources sources = machineSources();
  sources.kernelLog = [] { return KernelLog(); };
  const auto readings = HostInventory(std::move(sources)).surroundings("/tmp");
  ASSERT_TRUE(readings.ok());
  for (const UnreadableSource& source : readings->unreadable)
    ADD_FAILURE() << source.name << ": " << source.reason;
  for (const char* name :
       {"cpu_count", "memory_total", "limit_memlock", "limit_nofile", "shm_size", "disk_free",
        "clock_source_fast", "cpu_quota_ratio", "memory_limit_ratio", "rdma_ports", "container"})
    EXPECT_NE(find(*readings, name), nullptr) << name;
}

TEST(HostInventory, HealthTellsTheCountersOfRdmaPortsAndWhichCannotBeRead) {
  const TempDir dir;
  const std::string port = "sys/class/infiniband/mlx5_3/ports/1/";
  dir.write(port + "state", "4: ACTIVE\n");
  dir.write(port + "counters/link_downed", "2\n");
  dir.write(port + "counters/symbol_error", "65535\n");
  HostInventory inventory(sourcesOf(dir));
  const auto readings = inventory.health(0, "");
  ASSERT_TRUE(readings.ok());
  const Reading* downed = find(*readings, "rdma_link_downed");
  ASSERT_NE(downed, nullptr);
  EXPECT_EQ(downed->value, 2);
  EXPECT_EQ(downed->labels.at("port"), "mlx5_3/1");
  EXPECT_EQ(find(*readings, "rdma_symbol_errors"), nullptr) << "it cannot count any more";
  EXPECT_TRUE(isUnreadable(*readings, "RDMA counter counters/symbol_error"));
}

}  // namespace
}  // namespace muster
