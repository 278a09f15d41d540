// SPDX-License-Identifier: Apache-2.0
// The inventory as a whole, of made-up machines and of this one.
#include "kernels/host/inventory/host_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/host/inventory/cpu.h"
#include "kernels/host/inventory/inventory.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

HostSources sourcesOf(const TempDir& dir) {
  return {Root(dir.path()), [] { return std::string(); }, "", 1, nullptr, [] { return 0.0; }};
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
  sources.kernelLog = [] { return Result<std::string>(Error{ErrorCode::kIo, "forbidden", "kernel log"}); };
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
  sources.kernelLog = [] { return std::string(); };
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
