// SPDX-License-Identifier: Apache-2.0
// What a simulated node says of itself, and its health over virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kernels/sim/sim_inventory.h"
#include "tests/kernels/sim/small_scenario.h"

namespace muster::sim {
namespace {

SimInventory inventoryOf(const std::string& more, int nodeRank = 0) {
  auto scenario = smallScenario(more);
  return {scenario, buildUnits(scenario, nodeRank, 0), nodeRank, 3, 0};
}

double valueOf(const Readings& readings, const std::string& name, const std::string& device) {
  for (const Reading& r : readings.values)
    if (r.name == name && r.device == device) return r.value;
  ADD_FAILURE() << "no reading " << name << " of " << device;
  return -1;
}

TEST(SimInventory, TellsDevicesWithIdentity) {
  auto devices = inventoryOf("").devices();
  ASSERT_EQ(devices->size(), 2u);
  const DeviceInfo& second = (*devices)[1];
  EXPECT_EQ(second.id, "gpu1");
  EXPECT_EQ(second.pciId, "10de:0001");
  EXPECT_EQ(second.memoryBytes, 1000000000u);
  EXPECT_EQ(second.facts.at("driver"), "580.00");
  EXPECT_DOUBLE_EQ(second.peaks.at("memory_bandwidth"), 2e9);
  EXPECT_NE((*devices)[0].uuid, second.uuid);
}

TEST(SimInventory, RenumbersTheRestWhenADeviceIsMissing) {
  auto healthy = inventoryOf("").devices();
  auto devices = inventoryOf("[[fault]]\nkind = \"missing\"\ndevice = 0\n").devices();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].id, "gpu0");
  EXPECT_EQ((*devices)[0].uuid, (*healthy)[1].uuid);
}

TEST(SimInventory, TellsHowManyDevicesEachNodeHasWhereTheyDiffer) {
  const auto told = [](const std::string& more) {
    const Json host = (*inventoryOf(more, 2).node())["host"];
    return host.contains("devices_of_nodes") ? dumpJson(host["devices_of_nodes"]) : "";
  };
  EXPECT_EQ(told(""), "");
  EXPECT_EQ(told("[[fault]]\nkind = \"missing\"\nnode = 1\ndevice = 0\n"), "[2,1,2]");
}

TEST(SimInventory, GivesEachNodeItsOwnDevicesAndName) {
  auto first = inventoryOf("", 0);
  auto second = inventoryOf("", 1);
  EXPECT_NE((*first.devices())[0].uuid, (*second.devices())[0].uuid);
  EXPECT_NE(dumpJson((*first.node())["host"]), dumpJson((*second.node())["host"]));
  EXPECT_TRUE((*first.node())["host"]["simulated"].get<bool>());
}

TEST(SimInventory, WarmsUpUnderLoadOnly) {
  SimInventory inventory = inventoryOf("");
  double idle = valueOf(*inventory.health(600, "idle"), reading::kTemperature, "gpu0");
  double loaded = valueOf(*inventory.health(600, "compute"), reading::kTemperature, "gpu0");
  double early = valueOf(*inventory.health(1, "compute"), reading::kTemperature, "gpu0");
  EXPECT_GT(loaded, idle + 20);
  EXPECT_GT(loaded, early + 15);
}

TEST(SimInventory, ThrottlesByHeatBeyondItsLimitAndStaysAtIt) {
  SimInventory inventory = inventoryOf(
      "[climate]\nidle_temperature = \"32 degC\"\nload_temperature = \"92 degC\"\n"
      "throttle_temperature = \"80 degC\"\ntime_constant = \"10s\"\n");
  const double begin = 10 * std::log(60.0 / 12.0);
  const auto at = [&](double time, const char* name) {
    return valueOf(*inventory.health(time, "compute"), name, "gpu1");
  };
  EXPECT_DOUBLE_EQ(at(begin - 0.1, reading::kThrottleThermal), 0);
  EXPECT_NEAR(at(begin + 5, reading::kThrottleThermal), 5, 1e-9);
  EXPECT_DOUBLE_EQ(at(begin + 5, reading::kTemperature), 80);
  EXPECT_NEAR(at(begin + 5, reading::kClock) / at(1, reading::kClock), 48.0 / 60, 1e-9);
}

TEST(SimInventory, TellsThatADeviceFellOffTheBus) {
  SimInventory inventory = inventoryOf("[[fault]]\nkind = \"missing\"\ndevice = 1\nat = 10\n");
  EXPECT_EQ(inventory.devices()->size(), 2u) << "at the start it is there";
  EXPECT_TRUE(inventory.health(9, "compute")->unreadable.empty());
  const auto readings = inventory.health(10, "compute");
  ASSERT_EQ(readings->unreadable.size(), 1u);
  EXPECT_EQ(readings->unreadable.front().device, "gpu1");
  EXPECT_EQ(valueOf(*readings, reading::kXidFatal, "gpu1"), 1);
  EXPECT_EQ(valueOf(*readings, reading::kXidFatal, "gpu0"), 0);
}

TEST(SimInventory, CountsThrottleTimeOfTheFaultyDeviceOnly) {
  SimInventory inventory =
      inventoryOf("[[fault]]\nkind = \"throttle\"\ndevice = 1\nfactor = 0.7\nfrom = 10\n");
  EXPECT_DOUBLE_EQ(valueOf(*inventory.health(12, "compute"), reading::kThrottleThermal, "gpu1"), 2);
  EXPECT_DOUBLE_EQ(valueOf(*inventory.health(12, "compute"), reading::kThrottleThermal, "gpu0"), 0);
  EXPECT_GT(valueOf(*inventory.health(12, "compute"), reading::kTemperature, "gpu1"), 85);
}

TEST(SimInventory, ShowsEccErrorsFromTheirTimeOn) {
  SimInventory inventory = inventoryOf(
      "[[fault]]\nkind = \"ecc\"\ndevice = 0\nat = 5\ncorrected = 40\nuncorrected = 2\nremap_pending = "
      "true\n");
  EXPECT_DOUBLE_EQ(valueOf(*inventory.health(4, ""), reading::kEccUncorrected, "gpu0"), 0);
  Readings later = *inventory.health(5, "");
  EXPECT_DOUBLE_EQ(valueOf(later, reading::kEccUncorrected, "gpu0"), 2);
  EXPECT_DOUBLE_EQ(valueOf(later, reading::kEccCorrected, "gpu0"), 40);
  EXPECT_DOUBLE_EQ(valueOf(later, reading::kRowRemapPending, "gpu0"), 1);
}

TEST(SimInventory, ShowsCorrectedErrorsByPlace) {
  SimInventory inventory = inventoryOf(
      "[[fault]]\nkind = \"ecc\"\ndevice = 0\ncorrected = 40\n"
      "[[fault]]\nkind = \"ecc\"\ndevice = 0\ncorrected = 7\nmemory = \"sram\"\n");
  const Readings readings = *inventory.health(1, "");
  std::map<std::string, double> corrected;
  for (const Reading& reading : readings.values)
    if (reading.name == reading::kEccCorrected && reading.device == "gpu0")
      corrected[reading.labels.at("memory")] = reading.value;
  EXPECT_EQ(corrected, (std::map<std::string, double>{{"dram", 40}, {"sram", 7}}));
}

TEST(SimInventory, AGpuThatHeatThrottlesHasNoMarginLeft) {
  SimInventory inventory = inventoryOf(
      "[[fault]]\nkind = \"throttle\"\ndevice = 1\nfactor = 0.9\nreason = \"thermal\"\nfrom = 10\n");
  EXPECT_GT(valueOf(*inventory.health(9, "compute"), reading::kSlowdownMargin, "gpu1"), 10);
  EXPECT_DOUBLE_EQ(valueOf(*inventory.health(12, "compute"), reading::kSlowdownMargin, "gpu1"), 0);
  EXPECT_GT(valueOf(*inventory.health(12, "compute"), reading::kSlowdownMargin, "gpu0"), 10);
}

TEST(SimInventory, CountsThrottlingBySoftwareApart) {
  SimInventory inventory = inventoryOf(
      "[[fault]]\nkind = \"throttle\"\ndevice = 1\nfactor = 0.9\nreason = \"thermal_software\"\nfrom = 10\n");
  EXPECT_DOUBLE_EQ(valueOf(*inventory.health(12, "compute"), reading::kThrottleSoftware, "gpu1"), 2);
  EXPECT_DOUBLE_EQ(valueOf(*inventory.health(12, "compute"), reading::kThrottleThermal, "gpu1"), 0);
}

TEST(SimInventory, TellsApplicationXidsFromFatalOnes) {
  SimInventory inventory = inventoryOf(
      "[[fault]]\nkind = \"xid\"\ndevice = 0\nxid = 79\n[[fault]]\nkind = \"xid\"\ndevice = 1\nxid = 31\n");
  Readings readings = *inventory.health(1, "");
  EXPECT_DOUBLE_EQ(valueOf(readings, reading::kXidFatal, "gpu0"), 1);
  EXPECT_DOUBLE_EQ(valueOf(readings, reading::kXidApplication, "gpu0"), 0);
  EXPECT_DOUBLE_EQ(valueOf(readings, reading::kXidApplication, "gpu1"), 1);
  EXPECT_TRUE(std::any_of(readings.values.begin(), readings.values.end(), [](const Reading& r) {
    return r.name == reading::kXidFatal && r.text == "XID 79 (GPU has fallen off the bus)";
  }));
}

TEST(SimInventory, TellsTheFabricsHealthFromItsTimeOn) {
  SimInventory inventory = inventoryOf("[[fault]]\nkind = \"fabric\"\ndevice = 1\nat = 5\nmask = 410\n");
  EXPECT_EQ(valueOf(*inventory.health(4, ""), reading::kFabricHealthy, "gpu1"), 1);
  const Readings later = *inventory.health(5, "");
  EXPECT_EQ(valueOf(later, reading::kFabricHealthy, "gpu1"), 0);
  EXPECT_EQ(valueOf(later, reading::kFabricHealthy, "gpu0"), 1);
  EXPECT_TRUE(std::any_of(later.values.begin(), later.values.end(), [](const Reading& r) {
    return r.name == reading::kFabricHealthy && r.text == "unhealthy route";
  }));
}

TEST(SimInventory, CountsSxidsOfItsNode) {
  SimInventory inventory = inventoryOf(
      "[[fault]]\nkind = \"sxid\"\nat = 5\nsxid = 20034\n[[fault]]\nkind = \"sxid\"\nsxid = 22013\nfatal = "
      "false\n"
      "[[fault]]\nkind = \"sxid\"\nsxid = 12028\nnode = 7\n");
  EXPECT_EQ(valueOf(*inventory.health(4, ""), reading::kSxidFatal, ""), 0);
  const Readings later = *inventory.health(5, "");
  EXPECT_EQ(valueOf(later, reading::kSxidFatal, ""), 1);
  EXPECT_EQ(valueOf(later, reading::kSxidNonfatal, ""), 1);
}

TEST(SimInventory, SpreadsHealthyDevicesByLittle) {
  Scenario scenario = *smallScenario();
  scenario.figures.spread = 0.006;
  auto shared = std::make_shared<const Scenario>(scenario);
  std::set<double> speeds;
  for (int node = 0; node < 50; ++node)
    for (const SimUnit& unit : buildUnits(shared, node, 0)) {
      EXPECT_NEAR(unit.speed, 1, 3 * 0.006);
      speeds.insert(unit.speed);
    }
  EXPECT_GT(speeds.size(), 90u);
}

TEST(SimInventory, KeepsADevicesSpeedFromRunToRun) {
  Scenario scenario = *smallScenario();
  scenario.figures.spread = 0.006;
  auto shared = std::make_shared<const Scenario>(scenario);
  SimUnit first = buildUnits(shared, 0, 1).front();
  SimUnit second = buildUnits(shared, 0, 2).front();
  EXPECT_EQ(first.speed, second.speed);
  EXPECT_NE(first.key, second.key);
}

}  // namespace
}  // namespace muster::sim
