// SPDX-License-Identifier: Apache-2.0
// Processors: what /proc and /sys say of them, and what we measure.
#include "kernels/host/inventory/cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

TEST(CpuModel, ReadsTheFirstProcessor) {
  const TempDir dir;
  dir.write("proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD "
            "EPYC 9575F\n"
            "microcode\t: 0x1000065\nflags\t\t: fpu avx512f avx2\n\nprocessor\t: 1\nmodel name\t: other\n");
  const CpuModel model = readCpuModel(Root(dir.path()));
  EXPECT_EQ(model.name, "AMD EPYC 9575F");
  EXPECT_EQ(model.family, 26);
  EXPECT_TRUE(model.has("avx2"));
  EXPECT_TRUE(model.has("fpu"));
  EXPECT_FALSE(model.has("avx")) << "a flag is a whole word";
}

TEST(CpuModel, AnEmptyMachineHasAnUnknownCpu) {
  const TempDir dir;
  dir.write("proc/cpuinfo", "");
  EXPECT_EQ(readCpuModel(Root(dir.path())).name, "unknown CPU");
}

TEST(CpuTimes, AddsUpTheKernelsColumns) {
  const TempDir dir;
  dir.write("proc/stat", "cpu  100 20 30 4000 50 6 7 80 0 0\ncpu0 1 2 3 4\n");
  const auto times = readCpuTimes(Root(dir.path()));
  ASSERT_TRUE(times.ok());
  EXPECT_NEAR(times->busy, 1.63, 1e-9);
  EXPECT_NEAR(times->idle, 40.5, 1e-9);
  EXPECT_NEAR(times->steal, 0.8, 1e-9);
}

TEST(CpuTimes, AShortLineIsAnError) {
  const TempDir dir;
  dir.write("proc/stat", "cpu  100 20\n");
  EXPECT_FALSE(readCpuTimes(Root(dir.path())).ok());
}

TEST(ReportedClock, IsTheFastestAndAbsentWithoutCpufreq) {
  const TempDir dir;
  dir.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2100000\n");
  dir.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3900000\n");
  EXPECT_DOUBLE_EQ(*reportedClockHz(Root(dir.path()), {0, 1}), 3.9e9);
  EXPECT_FALSE(reportedClockHz(Root(dir.path()), {2}));
}

TEST(ThermalThrottle, IsTheLongestOfThePackages) {
  const TempDir dir;
  dir.write("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms", "0");
  dir.write("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_total_time_ms", "1500");
  EXPECT_DOUBLE_EQ(*thermalThrottleSeconds(Root(dir.path()), {0, 1}), 1.5);
  EXPECT_FALSE(thermalThrottleSeconds(Root(dir.path()), {7}));
}

TEST(MeasuredClock, IsThatOfAProcessor) {
  const double clock = measureClockHz();
  EXPECT_GT(clock, 1e8);
  EXPECT_LT(clock, 1e10);
}

TEST(Affinity, IsWhatThisProcessMayUse) {
  const std::vector<int> cpus = affinity();
  ASSERT_FALSE(cpus.empty());
  EXPECT_LE(static_cast<long>(cpus.size()), sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GE(onlineCpus(Root()).size(), cpus.size());
}

}  // namespace
}  // namespace muster
