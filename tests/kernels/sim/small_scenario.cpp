// SPDX-License-Identifier: Apache-2.0
// A small scenario for the tests of the sim backend.
#include "tests/kernels/sim/small_scenario.h"

#include <gtest/gtest.h>

#include "kernels/sim/sim_inventory.h"

namespace muster::sim {

std::string smallScenarioText(const std::string& more) {
  return R"(schema = 1
name = "small"
[devices]
count = 2
name = "Test GPU"
pci_id = "10de:0001"
memory = "1 GB"
[devices.facts]
driver = "580.00"
[peaks]
"flops.bf16" = "2 TFLOP/s"
memory_bandwidth = "2 GB/s"
[figures]
noise = 0
spread = 0
overhead = 0
ramp = 0
[figures.gemm]
bf16 = "1 TFLOP/s"
f32 = "500 GFLOP/s"
[figures.memory]
read = "1 GB/s"
write = "1 GB/s"
copy = "1 GB/s"
triad = "1 GB/s"
)" + more;
}

std::shared_ptr<const Scenario> smallScenario(const std::string& more) {
  auto scenario = parseScenario(smallScenarioText(more), "small.toml");
  EXPECT_TRUE(scenario.ok()) << scenario.error().text();
  return std::make_shared<const Scenario>(std::move(*scenario));
}

std::unique_ptr<SimDevice> smallDevice(const std::string& more, int index, double start, int nodeRank) {
  return std::make_unique<SimDevice>(
      buildUnits(smallScenario(more), nodeRank, 0).at(static_cast<size_t>(index)), start);
}

}  // namespace muster::sim
