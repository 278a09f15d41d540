// SPDX-License-Identifier: Apache-2.0
// The inventory of a node with GPUs, over the fake NVML.
#include "kernels/cuda/inventory/cuda_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>

#include "kernels/cuda/inventory/nvlink.h"
#include "tests/fakes/nvml/headers.h"
#include "tests/kernels/cuda_inventory/fake_nvml.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

std::vector<DeviceInfo> devicesOf(cuda::CudaInventory& inventory) {
  auto devices = inventory.devices();
  if (devices.ok()) return std::move(devices).value();
  ADD_FAILURE() << devices.error().text();
  return {};
}

Readings healthOf(cuda::CudaInventory& inventory, double at = 0) {
  auto readings = inventory.health(at, "idle");
  if (readings.ok()) return std::move(readings).value();
  ADD_FAILURE() << readings.error().text();
  return {};
}

Readings setupOf(cuda::CudaInventory& inventory) {
  auto readings = inventory.surroundings(".");
  if (readings.ok()) return std::move(readings).value();
  ADD_FAILURE() << readings.error().text();
  return {};
}

/// What the unreadable sources of a device say, of those that are NVML's.
std::string unreadableOf(const Readings& readings, const std::string& device) {
  std::string all;
  for (const UnreadableSource& source : readings.unreadable)
    if (source.device == device) all += source.name + ": " + source.reason + "\n";
  return all;
}

/// Limits of NVLink must not meet PCIe, and a driver that cannot tell them apart is an error.
TEST(CudaInventory, SaysWhatCarriesCopiesBetweenTwoGpus) {
  const auto linkOf = [](const std::string& scenario, const std::string& to) {
    FakeNode node(scenario);
    for (const auto& [gpu, numaNode] : {std::pair{"18", "0"}, {"2a", "0"}, {"60", "1"}})
      node.file(std::string("sys/bus/pci/devices/0000:") + gpu + ":00.0/numa_node", numaNode);
    const auto link = node.open()->link("gpu0", to);
    return link.ok() ? *link : link.error().message;
  };
  EXPECT_EQ(linkOf("", "gpu7"), "nvlink");
  EXPECT_EQ(linkOf("gpu * p2p_nvlink 1", "gpu1"), "pcie_host") << "its NVLinks are down";
  EXPECT_EQ(linkOf("gpu * nvlinks 0", "gpu1"), "pcie_host");
  EXPECT_EQ(linkOf("gpu * nvlinks 0", "gpu4"), "pcie_system");
  EXPECT_EQ(linkOf("gpu * nvlinks 0\ncall nvmlDeviceGetP2PStatus 3", "gpu4"), "pcie_system");
  for (const char* untold :
       {"call nvmlDeviceGetP2PStatus 3", "call nvmlDeviceGetP2PStatus 999", "gpu * p2p_nvlink 6"})
    EXPECT_THAT(linkOf(untold, "gpu1"), HasSubstr("does not say whether NVLink joins gpu0 and gpu1"))
        << untold;
  EXPECT_THAT(linkOf("", "gpu9"), HasSubstr("no GPU gpu9"));
}

TEST(CudaInventory, TellsWhatEachGpuIs) {
  FakeNode node;
  const auto devices = devicesOf(*node.open());
  ASSERT_EQ(devices.size(), 8u);
  const DeviceInfo& gpu = devices[3];
  EXPECT_EQ(gpu.id, "gpu3");
  EXPECT_EQ(gpu.kind, "gpu");
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.pciId, "10de:2330");
  EXPECT_EQ(gpu.pciAddress, "0000:4e:00.0");
  EXPECT_EQ(gpu.serial, "1651023010003");
  EXPECT_EQ(gpu.uuid.substr(0, 4), "GPU-");
  EXPECT_EQ(gpu.memoryBytes, 85520809984u);
  EXPECT_EQ(gpu.numaNode, 0);
  EXPECT_EQ(devices[4].numaNode, 1);
  EXPECT_FALSE(gpu.cpus.empty());
  for (const auto& [name, value] : std::map<std::string, std::string>{{"vbios", "96.00.74.00.01"},
                                                                      {"pcie_width", "16 of 16"},
                                                                      {"nvlinks", "18 of 18 at 26.56 GB/s"},
                                                                      {"ecc", "on"},
                                                                      {"mig", "off"},
                                                                      {"compute_mode", "default"},
                                                                      {"driver", "580.95.05"},
                                                                      {"cuda", "13.0"},
                                                                      {"compute_capability", "9.0"}})
    EXPECT_EQ(gpu.facts.at(name), value) << name;
}

TEST(CudaInventory, ComputesPeaksOfKnownArchitecturesOnly) {
  FakeNode node("gpu 1 capability 30\n");
  const auto devices = devicesOf(*node.open());
  // The datasheet's: of 132 multiprocessors at 1830 MHz, and at 1980 MHz without the tensor cores.
  EXPECT_NEAR(devices[0].peaks.at("flops.bf16"), 989.4e12, 0.1e12);
  EXPECT_NEAR(devices[0].peaks.at("flops.f32"), 66.9e12, 0.1e12);
  EXPECT_NEAR(devices[0].peaks.at("memory_bandwidth"), 3.352e12, 0.001e12);
  EXPECT_EQ(devices[1].peaks.count("flops.bf16"), 0u);
}

TEST(CudaInventory, ComputesThePeaksOfDatasheets) {
  struct Sheet {
    const char* name;
    int major, minor, cores, clock;
    std::map<std::string, double> teraflops;  ///< 0: the datasheet has none, or we know none
  };
  const Sheet sheets[] = {
      {"A40", 8, 6, 10752, 1740, {{"bf16", 149.7}, {"tf32", 74.8}, {"i8", 299.3}, {"fp8_e4m3", 0}}},
      {"B200", 10, 0, 18944, 1965, {{"bf16", 2250}, {"fp8_e4m3", 4500}, {"f32", 74.5}, {"f64", 37.2}}},
      {"B300", 10, 3, 18944, 1965, {{"bf16", 2250}, {"fp8_e4m3", 4500}, {"f64", 1.2}, {"i8", 0}}},
      {"RTX PRO 6000",
       12,
       0,
       24064,
       2617,
       {{"bf16", 503.8}, {"tf32", 251.9}, {"fp8_e4m3", 1007.6}, {"f64", 1.97}}}};
  for (const Sheet& sheet : sheets) {
    FakeNode node("gpu * capability " + std::to_string(sheet.major) + "\ngpu * capability_minor " +
                  std::to_string(sheet.minor) + "\ngpu * cores " + std::to_string(sheet.cores) +
                  "\ngpu * clock_max " + std::to_string(sheet.clock) + "\n");
    const auto peaks = devicesOf(*node.open()).at(0).peaks;
    for (const auto& [type, rate] : sheet.teraflops) {
      const auto found = peaks.find("flops." + type);
      EXPECT_NEAR(found == peaks.end() ? 0 : found->second, rate * 1e12, rate * 0.04e12)
          << sheet.name << " " << type;
    }
  }
}

TEST(CudaInventory, LeavesOutFactsThatADeviceLacksAndQuotesFailures) {
  FakeNode node("gpu * call nvmlDeviceGetBoardPartNumber 3\ngpu 2 call nvmlDeviceGetVbiosVersion 999\n");
  const auto devices = devicesOf(*node.open());
  EXPECT_EQ(devices[2].facts.count("board_part_number"), 0u);
  EXPECT_EQ(devices[2].facts.at("vbios"), "unreadable: Unknown Error (NVML 999)");
}

TEST(CudaInventory, AnUnreadableIdentityIsAnErrorThatNamesTheGpu) {
  FakeNode node("gpu 2 call nvmlDeviceGetUUID 999\n");
  const auto devices = node.open()->devices();
  ASSERT_FALSE(devices.ok());
  EXPECT_THAT(devices.error().text(), HasSubstr("gpu2 at 0000:3c:00.0: its UUID cannot be read"));
}

TEST(CudaInventory, ALostGpuIsLeftOutAndReportedOnce) {
  FakeNode node("gpu 3 call * 15\n");
  const auto inventory = node.open();
  const auto devices = devicesOf(*inventory);
  ASSERT_EQ(devices.size(), 7u);
  EXPECT_EQ(devices[3].id, "gpu4") << "the others keep their names";
  const Readings readings = healthOf(*inventory);
  EXPECT_EQ(valueOf(readings, "device_lost", "gpu3"), 1);
  EXPECT_THAT(readingOf(readings, "device_lost", "gpu3")->text, HasSubstr("GPU is lost (NVML 15)"));
  EXPECT_EQ(valueOf(readings, "device_lost", "gpu4"), 0);
  EXPECT_EQ(unreadableOf(readings, "gpu3"), "");
  const auto facts = inventory->node();
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ((*facts)["lost_devices"][0]["device"], "gpu3");
}

TEST(CudaInventory, AGpuThatIsLostMeanwhileSaysSo) {
  FakeNode node("gpu 3 call * 15 working\n");
  const auto inventory = node.open();
  EXPECT_EQ(valueOf(healthOf(*inventory), "device_lost", "gpu3"), 0);
  node.beginWork();
  const Readings readings = healthOf(*inventory);
  EXPECT_THAT(readingOf(readings, "device_lost", "gpu3")->text,
              HasSubstr("gpu3 at 0000:4e:00.0: GPU is lost"));
}

TEST(CudaInventory, ReadsHealthInBaseUnits) {
  FakeNode node(
      "header 13.1.115\ngpu 1 thermal_ns 1500000000\ngpu 1 hw_thermal_ns 500000000\n"
      "gpu 1 power_cap_ns 3000000000\n"
      "gpu 1 power_brake_ns 250000000\ngpu 1 clock_reasons 2\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(valueOf(readings, reading::kTemperature, "gpu1"), 35);
  EXPECT_EQ(valueOf(readings, reading::kMemoryTemperature, "gpu1"), 45);
  EXPECT_EQ(valueOf(readings, reading::kPower, "gpu1"), 72);
  EXPECT_EQ(valueOf(readings, reading::kClock, "gpu1"), 1755e6);
  EXPECT_EQ(valueOf(readings, reading::kUtilization, "gpu1"), 1);
  EXPECT_DOUBLE_EQ(valueOf(readings, reading::kThrottleThermal, "gpu1"), 0.5);
  EXPECT_DOUBLE_EQ(valueOf(readings, reading::kThrottleSoftware, "gpu1"), 1.5);
  EXPECT_DOUBLE_EQ(valueOf(readings, reading::kThrottlePowerCap, "gpu1"), 3);
  EXPECT_DOUBLE_EQ(valueOf(readings, reading::kThrottlePowerBrake, "gpu1"), 0.25);
  EXPECT_EQ(valueOf(readings, "clock_capped", "gpu1"), 1);
  EXPECT_EQ(valueOf(readings, "clock_capped", "gpu0"), 0);
}

/// What a GPU's clocks were held down by, in seconds, between a healthy sample and one two seconds later.
std::map<std::string, double> throttledBy(const std::string& scenario) {
  FakeNode node(scenario);
  const auto inventory = node.open();
  const Readings before = healthOf(*inventory, 10);
  node.beginWork();
  const Readings after = healthOf(*inventory, 12);
  EXPECT_EQ(unreadableOf(after, "gpu1"), "");
  std::map<std::string, double> grown;
  for (const char* name :
       {reading::kThrottleThermal, reading::kThrottlePowerBrake, reading::kThrottlePowerCap,
        reading::kThrottleHardware, reading::kThrottleSoftware})
    if (const double by = valueOf(after, name, "gpu1") - valueOf(before, name, "gpu1"); by != 0)
      grown[name] = by;
  return grown;
}

/// Every version of NVML that the fake knows, by its header.
class EveryNvml : public ::testing::TestWithParam<HeaderFacts> {
 protected:
  [[nodiscard]] static std::string header() { return std::string("header ") + GetParam().version + "\n"; }
};

TEST_P(EveryNvml, FindsThermalThrottling) {
  EXPECT_EQ(throttledBy(header() + "gpu 1 thermal_violation_ns 1500000000 working\n"
                                   "gpu 1 hw_thermal_ns 1500000000 working\n"),
            (std::map<std::string, double>{{reading::kThrottleThermal, 1.5}}));
  EXPECT_EQ(throttledBy(header() + "gpu 1 clock_reasons 72 working\n"),
            (std::map<std::string, double>{{reading::kThrottleThermal, 2}}));
}

TEST_P(EveryNvml, TellsThermalThrottlingByTheDriverFromThatOfTheHardware) {
  const std::map<std::string, double> bySoftware{{reading::kThrottleSoftware, 1.5}};
  const std::map<std::string, double> byHardware{{reading::kThrottleThermal, 1.5}};
  const std::string counted = header() + "gpu 1 thermal_ns 1500000000 working\n";
  // Some drivers count both as one, and no sample shows the reason: that counts as the hardware's.
  const bool told = header() == "header 12.9.79\n" || header() == "header 13.1.115\n";
  EXPECT_EQ(throttledBy(counted), told ? bySoftware : byHardware);
  EXPECT_EQ(throttledBy(header() + "gpu 1 thermal_ns 2000000000 working\ngpu 1 clock_reasons 32 working\n"),
            (std::map<std::string, double>{{reading::kThrottleSoftware, 2}}));
}

TEST_P(EveryNvml, FindsThePowerBrake) {
  EXPECT_EQ(
      throttledBy(header() + "gpu 1 power_brake_ns 2000000000 working\ngpu 1 clock_reasons 136 working\n"),
      (std::map<std::string, double>{{reading::kThrottlePowerBrake, 2}}));
}

TEST_P(EveryNvml, FindsThePowerCap) {
  EXPECT_EQ(throttledBy(header() + "gpu 1 power_cap_ns 1750000000 working\ngpu 1 clock_reasons 4 working\n"),
            (std::map<std::string, double>{{reading::kThrottlePowerCap, 1.75}}));
}

TEST_P(EveryNvml, BlamesNeitherPowerSmoothingNorTheBoardLimit) {
  EXPECT_EQ(
      throttledBy(header() +
                  "gpu * power_smoothing 1000000000 working\ngpu * board_limit_ns 1000000000 working\n"),
      (std::map<std::string, double>{}));
}

TEST_P(EveryNvml, ReadsTheFabricAsFarAsItIsTold) {
  FakeNode node(header() + "gpu 3 fabric_mask 425\ngpu 4 fabric 2\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(unreadableOf(readings, "gpu3"), "");
  if (GetParam().fabricInfo == 0) {
    EXPECT_EQ(readingOf(readings, "fabric_ready", "gpu3"), nullptr);
    return;
  }
  EXPECT_EQ(valueOf(readings, "fabric_ready", "gpu3"), 1);
  EXPECT_EQ(valueOf(readings, "fabric_ready", "gpu4"), 0);
  if (GetParam().fabricInfo == 1) {
    EXPECT_EQ(readingOf(readings, reading::kFabricHealthy, "gpu3"), nullptr) << "this driver tells no health";
    return;
  }
  EXPECT_EQ(valueOf(readings, reading::kFabricHealthy, "gpu2"), 1);
  EXPECT_EQ(valueOf(readings, reading::kFabricHealthy, "gpu3"), 0);
  EXPECT_EQ(readingOf(readings, reading::kFabricHealthy, "gpu3")->text, "degraded bandwidth");
}

TEST_P(EveryNvml, ReadsTheRecoveryActionWhereThereIsOne) {
  FakeNode node(header() + "gpu 3 recovery_action 1\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(unreadableOf(readings, "gpu3"), "");
  if (GetParam().fieldsEnd <= 230) {
    EXPECT_EQ(readingOf(readings, "recovery_needed", "gpu3"), nullptr);
    return;
  }
  EXPECT_EQ(valueOf(readings, "recovery_needed", "gpu3"), 1);
  EXPECT_EQ(readingOf(readings, "recovery_needed", "gpu3")->text, "reset the GPU");
  EXPECT_EQ(valueOf(readings, "recovery_needed", "gpu2"), 0);
}

TEST_P(EveryNvml, TellsTheDegreesThatAreLeftToTheSlowdown) {
  FakeNode node(header() + "gpu 1 temperature 80\ngpu 1 slowdown_temperature 84\ngpu 1 margin 2\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(unreadableOf(readings, "gpu1"), "");
  EXPECT_EQ(valueOf(readings, "slowdown_margin", "gpu1"), 4);
  EXPECT_EQ(valueOf(readings, "slowdown_margin", "gpu0"), 54);
}

TEST_P(EveryNvml, NamesGpusOfAnotherCliqueThanMost) {
  FakeNode node(header() + "gpu * fabric_clique 3\ngpu 5 fabric_clique 4\ngpu 6 fabric_cluster 171\n");
  const Readings readings = setupOf(*node.open());
  if (GetParam().fabricInfo == 0) {
    EXPECT_EQ(readingOf(readings, "fabric_clique_differs", "gpu5"), nullptr);
    return;
  }
  EXPECT_EQ(valueOf(readings, "fabric_clique_differs", "gpu4"), 0);
  EXPECT_EQ(readingOf(readings, "fabric_clique_differs", "gpu5")->text,
            "00000000-0000-0000-0000-000000000000.4, where most of its peers have "
            "00000000-0000-0000-0000-000000000000.3");
  EXPECT_THAT(readingOf(readings, "fabric_clique_differs", "gpu6")->text,
              HasSubstr("abababab-abab-abab-abab-abababababab.3, where"));
}

INSTANTIATE_TEST_SUITE_P(All, EveryNvml, ::testing::ValuesIn(kHeaders), [](const auto& info) {
  std::string name = info.param.version;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(CudaInventory, ThrottlingIsToldByFieldsWhereTheCallIsGone) {
  const std::string gone = "gpu * call nvmlDeviceGetViolationStatus 13\n";
  EXPECT_EQ(throttledBy(gone + "gpu 1 thermal_violation_ns 7000000000 working\n"),
            (std::map<std::string, double>{{reading::kThrottleThermal, 7}}));
  EXPECT_EQ(throttledBy(gone + "gpu 1 power_cap_ns 4000000000 working\n"),
            (std::map<std::string, double>{{reading::kThrottlePowerCap, 4}}));
}

TEST(CudaInventory, ASlowdownOfTheHardwareWithoutAnotherReasonIsAReadingOfItsOwn) {
  EXPECT_EQ(throttledBy("gpu 1 clock_reasons 8 working\n"),
            (std::map<std::string, double>{{reading::kThrottleHardware, 2}}));
}

TEST(CudaInventory, AThrottleSourceThatFailsIsUnreadable) {
  FakeNode node("header 13.1.115\ngpu 1 call nvmlDeviceGetViolationStatus 999\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(readingOf(readings, reading::kThrottleThermal, "gpu1"), nullptr);
  EXPECT_THAT(unreadableOf(readings, "gpu1"), HasSubstr("throttle_thermal: Unknown Error (NVML 999)"));
}

TEST(CudaInventory, NotSupportedLeavesNoReadingAndIsNotAFault) {
  FakeNode node("gpu * call nvmlDeviceGetPcieReplayCounter 3\ngpu * memory_temperature none\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(readingOf(readings, reading::kPcieReplay, "gpu0"), nullptr);
  EXPECT_EQ(readingOf(readings, reading::kMemoryTemperature, "gpu0"), nullptr);
  EXPECT_EQ(unreadableOf(readings, "gpu0"), "");
}

TEST(CudaInventory, WhatPeersOfTheSameModelHaveIsNotBelievedToBeAbsent) {
  FakeNode node(
      "gpu 2 call nvmlDeviceGetPcieReplayCounter 3\ngpu 4 call nvmlDeviceGetPcieReplayCounter 3\n"
      "gpu 4 name NVIDIA T400\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_THAT(unreadableOf(readings, "gpu2"),
              HasSubstr("pcie_replay: the driver reports that this GPU does not support it"));
  EXPECT_EQ(unreadableOf(readings, "gpu4"), "") << "another model";
}

TEST(CudaInventory, AnyOtherFailureIsAnUnreadableSourceInNvmlsWords) {
  FakeNode node("gpu 2 call nvmlDeviceGetTotalEccErrors 4\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(readingOf(readings, reading::kEccUncorrected, "gpu2"), nullptr);
  EXPECT_THAT(unreadableOf(readings, "gpu2"),
              HasSubstr("ecc_uncorrected: Insufficient Permissions (NVML 4)"));
  EXPECT_EQ(unreadableOf(readings, "gpu1"), "");
}

TEST(CudaInventory, RowRemapsOfNewerAndRetiredPagesOfOlderGpus) {
  FakeNode node(
      "gpu 0 remap_pending 1\ngpu 1 remap_failed 1\ngpu 2 call nvmlDeviceGetRemappedRows 3\n"
      "gpu 2 retired_pages 40\ngpu 2 retired_pending 1\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(valueOf(readings, reading::kRowRemapPending, "gpu0"), 1);
  EXPECT_EQ(valueOf(readings, reading::kRowRemapFailed, "gpu0"), 0);
  EXPECT_EQ(valueOf(readings, reading::kRowRemapFailed, "gpu1"), 1);
  EXPECT_EQ(valueOf(readings, reading::kRowRemapPending, "gpu2"), 1);
  EXPECT_EQ(valueOf(readings, reading::kRowRemapFailed, "gpu2"), 1) << "80 pages: no room is left";
  EXPECT_EQ(valueOf(readings, "retired_pages", "gpu2"), 80);
}

TEST(CudaInventory, CountsRemappedRowsByTheErrorsThatCausedThem) {
  FakeNode node("gpu 3 remapped_rows 600\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(valueOf(readings, "remapped_rows", "gpu3", {{"kind", "uncorrected"}}), 600);
  EXPECT_EQ(valueOf(readings, "remapped_rows", "gpu3", {{"kind", "corrected"}}), 0);
}

TEST(CudaInventory, CountsBanksByTheSpareRowsThatTheyHaveLeft) {
  FakeNode node(
      "gpu 3 banks 637\ngpu 3 banks_with_few_rows 2\ngpu 3 banks_without_rows 1\n"
      "gpu * call nvmlDeviceGetRowRemapperHistogram 3\ngpu 3 call nvmlDeviceGetRowRemapperHistogram 0\n"
      "gpu 3 name NVIDIA H200\n");
  const Readings readings = healthOf(*node.open());
  for (const auto& [left, count] : {std::pair{"all", 637}, {"most", 0}, {"some", 0}, {"few", 2}, {"none", 1}})
    EXPECT_EQ(valueOf(readings, "remap_banks", "gpu3", {{"spare_rows", left}}), count) << left;
  EXPECT_EQ(readingOf(readings, "remap_banks", "gpu2"), nullptr);
  EXPECT_EQ(unreadableOf(readings, "gpu2"), "");
}

TEST(CudaInventory, ACorruptedInforomIsTold) {
  FakeNode node(
      "gpu 3 call nvmlDeviceValidateInforom 14\ngpu 4 call nvmlDeviceValidateInforom 3\n"
      "gpu 4 name NVIDIA T400\ngpu 5 call nvmlDeviceValidateInforom 999\n");
  const Readings readings = setupOf(*node.open());
  EXPECT_EQ(valueOf(readings, "inforom_valid", "gpu2"), 1);
  EXPECT_EQ(valueOf(readings, "inforom_valid", "gpu3"), 0);
  EXPECT_EQ(unreadableOf(readings, "gpu3"), "");
  EXPECT_EQ(readingOf(readings, "inforom_valid", "gpu4"), nullptr) << "it has none";
  EXPECT_EQ(unreadableOf(readings, "gpu4"), "");
  EXPECT_THAT(unreadableOf(readings, "gpu5"), HasSubstr("inforom_valid: Unknown Error (NVML 999)"));
}

TEST(CudaInventory, AGpuWithoutThatThresholdHasNoMargin) {
  FakeNode node("header 12.6.77\ngpu * call nvmlDeviceGetTemperatureThreshold 2\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(readingOf(readings, "slowdown_margin", "gpu0"), nullptr);
  EXPECT_EQ(unreadableOf(readings, "gpu0"), "");
}

/// What IMEX says; nothing where it was not asked.
std::optional<Reading> imexOf(const Readings& readings) {
  const Reading* found = readingOf(readings, "imex_ready", "");
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void installImex(const FakeNode& node, const std::string& script, int mode = 0755) {
  node.file("usr/bin/nvidia-imex-ctl", "#!/bin/sh\n" + script + "\n");
  std::filesystem::permissions(node.path() / "usr/bin/nvidia-imex-ctl", std::filesystem::perms(mode));
}

TEST(CudaInventory, AsksImexWhereTheFabricSpansSeveralNodes) {
  FakeNode node("gpu * fabric_cluster 171\ngpu * fabric_clique 9\n");
  const auto inventory = node.open();
  EXPECT_FALSE(imexOf(setupOf(*inventory))) << "it is not installed";
  installImex(node, "test \"$*\" = -q && echo READY");
  ASSERT_TRUE(imexOf(setupOf(*inventory)));
  EXPECT_EQ(imexOf(setupOf(*inventory))->value, 1);
  EXPECT_EQ(devicesOf(*inventory)[2].facts.at("fabric_clique"), "abababab-abab-abab-abab-abababababab.9");
  installImex(node, "echo UNAVAILABLE; exit 1");
  EXPECT_EQ(imexOf(setupOf(*inventory))->value, 0);
  EXPECT_EQ(imexOf(setupOf(*inventory))->text, "UNAVAILABLE");
  installImex(node, "echo READY", 0777);
  EXPECT_EQ(imexOf(setupOf(*inventory))->value, 0) << "a program that everybody can replace is not run";
  EXPECT_THAT(imexOf(setupOf(*inventory))->text, HasSubstr("nvidia-imex-ctl"));
}

TEST(CudaInventory, DoesNotAskImexOfAFabricOfOneNode) {
  FakeNode node;
  installImex(node, "echo READY");
  const auto inventory = node.open();
  EXPECT_FALSE(imexOf(setupOf(*inventory)));
  EXPECT_EQ(devicesOf(*inventory)[2].facts.count("fabric_clique"), 0u);
}

TEST(CudaInventory, CountsTheFabricManagersErrorsWithinTheWindow) {
  FakeNode node;
  const auto errors = [](const Readings& readings) {
    const Reading* found = readingOf(readings, "fabric_manager_errors", "");
    return found == nullptr ? std::nullopt : std::optional(*found);
  };
  const auto at = [](double ago) {
    const std::time_t when = std::time(nullptr) - static_cast<std::time_t>(ago);
    std::tm local{};
    char text[40];
    strftime(text, sizeof text, "[%b %d %Y %H:%M:%S] ", localtime_r(&when, &local));
    return std::string(text);
  };
  const auto inventory = node.open();
  EXPECT_FALSE(errors(setupOf(*inventory))) << "no fabric manager, or it logs elsewhere";
  const std::string log =
      at(30000) + "[ERROR] [tid 841] detected NVSwitch fatal error 20034 on fid 0, long ago\n" + at(60) +
      "[INFO] [tid 841] Received an inband message:  Message header details: magic Id:adbc\n" + at(59) +
      "[ERROR] [tid 841] detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id "
      "00000000:86:00.0 physical id 3 port 61\n" +
      "[ERROR] [tid 841] without a time\n" + at(50) + "[WARNING] [tid 841] [ERROR] in its text\n" + at(40) +
      "[CRITICAL] [tid 841] fabric manager is exiting\x1b[2J\n";
  node.file("var/log/fabricmanager.log", log);
  ASSERT_TRUE(errors(setupOf(*inventory)));
  EXPECT_EQ(errors(setupOf(*inventory))->value, 2);
  EXPECT_THAT(errors(setupOf(*inventory))->text, HasSubstr("[CRITICAL] [tid 841] fabric manager is exiting"));
  EXPECT_EQ(errors(setupOf(*inventory))->text.find('\x1b'), std::string::npos);
  inventory->setLogWindow(50000);
  EXPECT_EQ(errors(setupOf(*inventory))->value, 3);
  node.file("var/log/fabricmanager.log",
            log + std::string(5 << 20, 'x') + "\n" + at(1) + "[ERROR] the end\n");
  EXPECT_EQ(errors(setupOf(*inventory))->value, 1) << "of a large log the end is read";
}

TEST(CudaInventory, AFabricManagersLogThatCannotBeTrustedIsARemark) {
  FakeNode node;
  node.file("elsewhere", "");
  const auto log = node.path() / "var/log/fabricmanager.log";
  std::filesystem::create_directories(log.parent_path());
  const auto inventory = node.open();
  const auto remark = [&]() -> std::string {
    const Readings readings = setupOf(*inventory);
    EXPECT_EQ(readingOf(readings, "fabric_manager_errors", ""), nullptr);
    EXPECT_EQ(unreadableOf(readings, "").find("fabric"), std::string::npos);
    const Reading* found = readingOf(readings, "fabric_manager_log", "");
    return found == nullptr ? "" : found->text;
  };
  std::filesystem::create_symlink(node.path() / "elsewhere", log);
  EXPECT_THAT(remark(), HasSubstr("ELOOP"));
  std::filesystem::remove(log);
  ASSERT_EQ(mkfifo(log.c_str(), 0644), 0);
  EXPECT_THAT(remark(), HasSubstr("regular file"));
  std::filesystem::remove(log);
  node.file("var/log/fabricmanager.log", "");
  std::filesystem::permissions(log, std::filesystem::perms(0666));
  EXPECT_THAT(remark(), HasSubstr("not everybody can write"));
}

TEST(CudaInventory, CountsCorrectedErrorsByPlaceWhereTheDriverTellsIt) {
  const auto corrected = [](const std::string& scenario, const Labels& place) {
    FakeNode node("gpu 3 ecc_corrected 40\ngpu 3 ecc_sram 2\n" + scenario);
    const Readings readings = healthOf(*node.open());
    const Reading* reading = readingOf(readings, reading::kEccCorrected, "gpu3", place);
    return reading == nullptr || reading->labels != place ? -1 : reading->value;
  };
  const Labels dram{{"memory", "dram"}}, sram{{"memory", "sram"}};
  EXPECT_EQ(corrected("", dram), 40);
  EXPECT_EQ(corrected("", sram), 2);
  EXPECT_EQ(corrected("gpu * ecc_sram none\n", dram), 40);
  EXPECT_EQ(corrected("gpu * ecc_sram none\n", sram), -1);
  EXPECT_EQ(corrected("gpu * call nvmlDeviceGetMemoryErrorCounter 3\n", {}), 40);
}

TEST(CudaInventory, CountsNvLinksAndNamesThoseThatAreDown) {
  FakeNode node(
      "gpu 6 nvlink_down 7\ngpu 6 nvlink_replays 12\ngpu 6 nvlink_recoveries 1\ngpu 6 nvlink_crc 500\n"
      "gpu 1 nvlinks 0\ngpu 1 name NVIDIA L4\n");
  const auto inventory = node.open();
  const Readings readings = healthOf(*inventory);
  EXPECT_EQ(valueOf(readings, "nvlinks_active", "gpu0"), 18);
  EXPECT_EQ(valueOf(readings, "nvlinks_active", "gpu6"), 17);
  EXPECT_EQ(readingOf(readings, "nvlinks_active", "gpu6")->text, "7");
  EXPECT_EQ(valueOf(readings, reading::kNvlinkErrors, "gpu6"), 13);
  EXPECT_EQ(readingOf(readings, reading::kNvlinkErrors, "gpu6")->text, "link 0: 12, link 1: 1");
  EXPECT_EQ(valueOf(readings, reading::kNvlinkCrcErrors, "gpu6"), 500);
  EXPECT_EQ(readingOf(readings, reading::kNvlinkCrcErrors, "gpu6")->text, "link 2: 500");
  EXPECT_EQ(readingOf(readings, "nvlinks_active", "gpu1"), nullptr) << "a GPU without NVLink";
  EXPECT_EQ(valueOf(readings, "nvlink_speed", "gpu0"), 26562e6);
}

TEST(CudaInventory, NamesC2cLinksThatAreDown) {
  FakeNode node("gpu * c2c_links 10\ngpu 2 c2c_down 7\ngpu 3 c2c_links 0\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(valueOf(readings, "c2c_links_down", "gpu1"), 0);
  EXPECT_EQ(valueOf(readings, "c2c_links_down", "gpu2"), 1);
  EXPECT_EQ(readingOf(readings, "c2c_links_down", "gpu2")->text, "7");
  EXPECT_EQ(readingOf(readings, "c2c_links_down", "gpu3"), nullptr);
  FakeNode without("");
  EXPECT_EQ(readingOf(healthOf(*without.open()), "c2c_links_down", "gpu2"), nullptr) << "a GPU without Grace";
}

/// 138 and 161 to 163 are fields of GPUs up to Hopper, the others of Blackwell.
TEST(CudaInventory, ReadsTheNvLinksOfBlackwellByFieldsOfTheirOwn) {
  FakeNode node(
      "gpu * capability 10\ngpu 6 nvlink_recoveries 3\ngpu 6 nvlink_bytes 4096\ngpu 2 capability 9\n"
      "gpu 2 nvlink_kib 8\ngpu 2 name NVIDIA H100\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(valueOf(readings, reading::kNvlinkErrors, "gpu6"), 3);
  EXPECT_EQ(readingOf(readings, reading::kNvlinkCrcErrors, "gpu6"), nullptr);
  const auto nvml = cuda::Nvml::open(node.root(), fakeNvmlLibrary());
  ASSERT_TRUE(nvml.ok());
  const auto sent = [&](unsigned gpu) {
    const auto handle = cuda::ask<nvmlDevice_t>((**nvml)->nvmlDeviceGetHandleByIndex_v2, gpu);
    return cuda::readNvLinkSentBytes(**nvml, handle.value).value;
  };
  EXPECT_EQ(sent(6), 4096);
  EXPECT_EQ(sent(2), 8192);
}

TEST(CudaInventory, ThePcieGenerationIsReadUnderLoadOnly) {
  FakeNode node("gpu 0 utilization 0\ngpu 0 pcie_generation 1\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(readingOf(readings, "pcie_link_generation", "gpu0"), nullptr);
  EXPECT_EQ(valueOf(readings, "pcie_link_generation", "gpu1"), 5);
  EXPECT_EQ(valueOf(readings, "pcie_link_width", "gpu0"), 16);
}

TEST(CudaInventory, AFabricThatIsNotReadySaysWhy) {
  FakeNode node("gpu 0 fabric 2\ngpu 1 fabric 0\ngpu 1 name NVIDIA L4\n");
  const Readings readings = healthOf(*node.open());
  EXPECT_EQ(valueOf(readings, "fabric_ready", "gpu0"), 0);
  EXPECT_EQ(readingOf(readings, "fabric_ready", "gpu0")->text, "registration is under way");
  EXPECT_EQ(readingOf(readings, "fabric_ready", "gpu1"), nullptr) << "no fabric";
  EXPECT_EQ(valueOf(readings, "fabric_ready", "gpu2"), 1);
}

TEST(CudaInventory, AFabricsTroublesAreNamed) {
  FakeNode node(
      "gpu 0 fabric_mask 681\ngpu 1 fabric_mask 357\ngpu 2 fabric_summary 2\ngpu 3 fabric_summary 3\n"
      "gpu 4 fabric_mask 0\ngpu 4 fabric_summary 0\ngpu 4 name NVIDIA H100 NVL\ngpu 5 fabric_mask 4010\n");
  const Readings readings = healthOf(*node.open());
  const auto text = [&](const char* gpu) {
    const Reading* reading = readingOf(readings, reading::kFabricHealthy, gpu);
    return reading == nullptr ? "none" : reading->text;
  };
  EXPECT_EQ(text("gpu0"), "degraded bandwidth, incorrect configuration: wrong system GUID");
  EXPECT_EQ(text("gpu1"),
            "degraded bandwidth, route recovery in progress, recovery from an access timeout in progress");
  EXPECT_EQ(text("gpu2"), "unhealthy, for a reason that is not reported");
  EXPECT_EQ(text("gpu3"), "limited capacity");
  EXPECT_EQ(text("gpu4"), "none") << "nothing of it is supported";
  EXPECT_EQ(text("gpu5"), "incorrect configuration 15");
  EXPECT_EQ(text("gpu6"), "");
}

TEST(CudaInventory, WithoutRootErrorsOfTheChipsMemoriesAreARemark) {
  FakeNode node(
      "gpu * call nvmlDeviceGetMemoryErrorCounter 3\ngpu * call nvmlDeviceGetSramEccErrorStatus 4\n");
  const Readings readings = setupOf(*node.open());
  EXPECT_EQ(unreadableOf(readings, "gpu3"), "");
  EXPECT_EQ(readingOf(readings, "ecc_errors", "gpu3"), nullptr);
  EXPECT_EQ(readingOf(readings, "sram_threshold_exceeded", "gpu3"), nullptr);
  ASSERT_NE(readingOf(readings, "sram_state", "gpu3"), nullptr);
  EXPECT_EQ(readingOf(readings, "sram_state", "gpu3")->text,
            "not readable: Insufficient Permissions (NVML 4); run as root");
}

TEST(CudaInventory, TheThresholdOfTheChipsMemoriesIsReadEvenWhereCountersAreByLocation) {
  FakeNode node("gpu 7 sram_threshold 1\n");
  const Readings readings = setupOf(*node.open());
  EXPECT_EQ(valueOf(readings, "sram_threshold_exceeded", "gpu7"), 1);
  EXPECT_EQ(valueOf(readings, "sram_threshold_exceeded", "gpu6"), 0);
}

TEST(CudaInventory, ReadsHowAGpuIsSetUp) {
  FakeNode node(
      "gpu 0 mig 1\ngpu 1 process 4711\ngpu 2 vbios 96.00.61.00.02\ngpu 3 ecc 0\ngpu 4 compute_mode 3\n"
      "gpu 5 persistence 0\ngpu 6 power_limit_mw 350000\ngpu 7 ecc_sram 2\ngpu 7 mig none\n");
  const Readings readings = setupOf(*node.open());
  EXPECT_EQ(valueOf(readings, "mig_mode", "gpu0"), 1);
  EXPECT_EQ(valueOf(readings, "mig_mode", "gpu7"), 0) << "a GPU that cannot be divided";
  EXPECT_EQ(valueOf(readings, "gpu_processes", "gpu1"), 1);
  EXPECT_EQ(readingOf(readings, "gpu_processes", "gpu1")->text, "pid 4711 (python3)");
  EXPECT_EQ(valueOf(readings, "gpu_processes", "gpu0"), 0);
  EXPECT_EQ(valueOf(readings, "vbios_differs", "gpu2"), 1);
  EXPECT_THAT(readingOf(readings, "vbios_differs", "gpu2")->text, HasSubstr("96.00.61.00.02, where most"));
  EXPECT_EQ(valueOf(readings, "vbios_differs", "gpu1"), 0);
  EXPECT_EQ(valueOf(readings, "ecc_mode", "gpu3"), 0);
  EXPECT_EQ(valueOf(readings, "compute_mode_default", "gpu4"), 0);
  EXPECT_EQ(valueOf(readings, "persistence_mode", "gpu5"), 0);
  EXPECT_EQ(valueOf(readings, "power_limit", "gpu6"), 350);
  const Labels sram{{"memory", "sram"}, {"kind", "uncorrected"}, {"since", "ever"}};
  EXPECT_EQ(valueOf(readings, "ecc_errors", "gpu7", sram), 2);
  EXPECT_EQ(valueOf(readings, "ecc_errors", "gpu6", sram), 0);
}

TEST(CudaInventory, NewerGpusTellErrorsOfTheChipsMemoriesByACallOfTheirOwn) {
  FakeNode node("gpu * call nvmlDeviceGetMemoryErrorCounter 3\ngpu 7 ecc_sram 2\n");
  const Readings readings = setupOf(*node.open());
  EXPECT_EQ(valueOf(readings, "ecc_errors", "gpu7",
                    {{"memory", "sram"}, {"kind", "uncorrected"}, {"since", "ever"}}),
            2);
  EXPECT_EQ(readingOf(readings, "ecc_errors", "gpu7",
                      {{"memory", "dram"}, {"kind", "uncorrected"}, {"since", "ever"}}),
            nullptr);
}

TEST(CudaInventory, ReadsWhatThePciBusSaysOfAGpu) {
  FakeNode node;
  const std::string place = "sys/bus/pci/devices/0000:4e:00.0/";
  node.file(place + "numa_node", "1\n");
  node.file(place + "aer_dev_correctable", "TOTAL_ERR_COR 5\n");
  node.file(place + "aer_dev_fatal", "TOTAL_ERR_FATAL 1\n");
  node.file(place + "iommu_group/type", "DMA\n");
  const auto inventory = node.open();
  EXPECT_EQ(devicesOf(*inventory)[3].numaNode, 1) << "sysfs knows better than the driver's guess";
  const Readings health = healthOf(*inventory);
  EXPECT_EQ(valueOf(health, "pcie_errors_corrected", "gpu3"), 5);
  EXPECT_EQ(valueOf(health, "pcie_errors_uncorrected", "gpu3"), 1);
  EXPECT_EQ(readingOf(health, "pcie_errors_corrected", "gpu2"), nullptr) << "no such counters";
  const Readings setup = setupOf(*inventory);
  EXPECT_EQ(valueOf(setup, "iommu_translates", "gpu3"), 1);
  EXPECT_EQ(readingOf(setup, "gpudirect_rdma", ""), nullptr) << "no RDMA device, nothing to reach the memory";
  node.file("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  EXPECT_EQ(valueOf(setupOf(*inventory), "gpudirect_rdma", "", {{"by", "none"}}), 0);
}

TEST(CudaInventory, ADriverTooOldForTheBuildIsOneLineWithWhatToDo) {
  FakeNode node("driver 535.129.03\ncuda 12020\n");
  const auto devices = node.open(13000)->devices();
  ASSERT_FALSE(devices.ok());
  EXPECT_EQ(devices.error().text(),
            "the NVIDIA driver 535.129.03 (CUDA 12.2) is too old for this build's CUDA 13.0, which needs "
            "driver 580 "
            "or newer; update the driver, install the package cuda-compat-13-0, or build Muster with CUDA "
            "12.2 (12.4 "
            "at least)");
  EXPECT_TRUE(node.open(12040)->devices().ok()) << "minor versions of CUDA fit each other";
  EXPECT_TRUE(node.open(0)->devices().ok()) << "a build without kernels needs none";
}

TEST(CudaInventory, WithoutLibcudaListsTheGpusAndSaysWhatToInstall) {
  FakeNode node("call nvmlSystemGetCudaDriverVersion_v2 12\n");
  const auto inventory = node.open(13000);
  EXPECT_EQ(devicesOf(*inventory).size(), 8u);
  const auto facts = inventory->node();
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ((*facts)["software"]["fit"],
            "libcuda.so.1 of driver 580.95.05 is missing, so nothing can run on GPUs; install all of the "
            "driver, or give the container NVIDIA_DRIVER_CAPABILITIES=compute,utility");
}

TEST(CudaInventory, NodeFactsTellVersionsAndWhetherTheyFit) {
  FakeNode node;
  const auto facts = node.open(13000)->node();
  ASSERT_TRUE(facts.ok());
  const Json& software = (*facts)["software"];
  EXPECT_EQ(software["nvidia_driver"], "580.95.05");
  EXPECT_EQ(software["cuda_driver"], "13.0");
  EXPECT_EQ(software["cuda_build"], "13.0");
  EXPECT_EQ(software["fit"], "yes");
  EXPECT_FALSE(software["cudnn"].get<std::string>().empty());
  EXPECT_FALSE((*facts).contains("lost_devices"));
}

TEST(CudaInventory, AGpuThatCannotBeReachedIsAnErrorThatNamesIt) {
  FakeNode node("gpu 5 call nvmlDeviceGetHandleByIndex_v2 4\n");
  const auto opened = node.tryToOpen();
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().text(), HasSubstr("gpu5: this GPU cannot be reached: Insufficient Permissions"));
}

}  // namespace
}  // namespace muster::testing
