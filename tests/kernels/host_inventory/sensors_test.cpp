// SPDX-License-Identifier: Apache-2.0
// Temperatures and memory error counters of a made-up machine.
#include "kernels/host/inventory/sensors.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

TEST(CpuTemperatures, GiveTheHottestPointOfEachCpuChip) {
  const TempDir dir;
  dir.write("sys/class/hwmon/hwmon0/name", "nvme");
  dir.write("sys/class/hwmon/hwmon0/temp1_input", "99000");
  dir.write("sys/class/hwmon/hwmon1/name", "coretemp");
  dir.write("sys/class/hwmon/hwmon1/temp1_input", "51000");
  dir.write("sys/class/hwmon/hwmon1/temp1_label", "Package id 0");
  dir.write("sys/class/hwmon/hwmon1/temp2_input", "63500");
  dir.write("sys/class/hwmon/hwmon1/temp2_label", "Core 3");
  dir.write("sys/class/hwmon/hwmon1/temp3_input", "not a number");
  const auto temperatures = readCpuTemperatures(Root(dir.path()));
  ASSERT_EQ(temperatures.size(), 1u);
  EXPECT_EQ(temperatures[0].sensor, "coretemp/Core 3");
  EXPECT_DOUBLE_EQ(temperatures[0].celsius, 63.5);
}

TEST(CpuTemperatures, FallBackToThermalZones) {
  const TempDir dir;
  dir.write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp");
  dir.write("sys/class/thermal/thermal_zone0/temp", "44000");
  dir.write("sys/class/thermal/thermal_zone1/type", "acpitz");
  dir.write("sys/class/thermal/thermal_zone1/temp", "20000");
  const auto temperatures = readCpuTemperatures(Root(dir.path()));
  ASSERT_EQ(temperatures.size(), 1u);
  EXPECT_DOUBLE_EQ(temperatures[0].celsius, 44);
}

TEST(CpuTemperatures, AreNoneInAVirtualMachine) {
  const TempDir dir;
  EXPECT_TRUE(readCpuTemperatures(Root(dir.path())).empty());
}

TEST(MemoryErrors, NameTheDimmThatCountsMost) {
  const TempDir dir;
  const std::string mc = "sys/devices/system/edac/mc/mc0/";
  dir.write(mc + "ue_count", "1");
  dir.write(mc + "ce_count", "12");
  dir.write(mc + "dimm0/dimm_ce_count", "2");
  dir.write(mc + "dimm0/dimm_label", "A1");
  dir.write(mc + "dimm4/dimm_ce_count", "10");
  dir.write(mc + "dimm4/dimm_ue_count", "1");
  dir.write(mc + "dimm4/dimm_label", "CPU_SrcID#0_MC#1_Chan#0_DIMM#0");
  const auto errors = readMemoryErrors(Root(dir.path()));
  ASSERT_TRUE(errors.ok());
  ASSERT_EQ(errors->size(), 1u);
  EXPECT_EQ(errors->at(0).controller, "mc0 CPU_SrcID#0_MC#1_Chan#0_DIMM#0");
  EXPECT_EQ(errors->at(0).uncorrected, 1);
  EXPECT_EQ(errors->at(0).corrected, 12);
}

TEST(MemoryErrors, ACounterThatCannotBeReadIsAnErrorAndNotZero) {
  const TempDir dir;
  dir.write("sys/devices/system/edac/mc/mc0/ue_count", "garbage");
  dir.write("sys/devices/system/edac/mc/mc0/ce_count", "0");
  EXPECT_FALSE(readMemoryErrors(Root(dir.path())).ok());
}

TEST(MemoryErrors, WithoutEdacThereAreNoCounters) {
  const TempDir dir;
  EXPECT_TRUE(readMemoryErrors(Root(dir.path()))->empty());
}

}  // namespace
}  // namespace muster
