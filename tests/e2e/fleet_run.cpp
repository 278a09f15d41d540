// SPDX-License-Identifier: Apache-2.0
// See fleet_run.h.
#include "tests/e2e/fleet_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace muster::testing {

const char* const kFleetPlan = R"(schema = 1
name = "short"
sku = "h100-sxm5-80gb"
backend = "cuda"

[[stage]]
name = "peer"
plugin = "memory"
test = "peer"
scope = "node"
timeout = "3m"
[[stage.expect]]
metric = "memory.peer_bandwidth"
within = "10%"
of = "node"
source = "test"
remedy = "Check the links of both GPUs"

[[stage]]
name = "gemm"
plugin = "compute"
test = "gemm"
scope = "device"
timeout = "4m"
[stage.params]
size = 8192
dtype = "bf16"
)";

std::string slowFault(const std::string& where, double factor, const std::string& ops) {
  return fmt::format("\n[[fault]]\nkind = \"slow\"\n{}\nfactor = {}\nops = [{}]\n", where, factor, ops);
}

std::string slowNode(const std::string& node, double factor) {
  std::string faults;
  for (int device = 0; device < 8; ++device)
    faults += slowFault(node + "\ndevice = " + std::to_string(device), factor);
  return faults;
}

ProcessResult FleetRun::simulate(int nodes, const std::string& faults, const std::vector<std::string>& more,
                                 const std::string& folder) {
  const auto plan = write("short.toml", kFleetPlan);
  const auto scene = write("scene.toml", readWhole(scenario("h100x8-healthy")) + faults);
  return runMuster(std::vector<std::string>{"run", plan.string(), "--simulate", scene.string(), "--nodes",
                                            std::to_string(nodes), "--plain", "--out",
                                            (path() / folder).string()} +
                   more);
}

ProcessResult FleetRun::judge(int nodes, const std::vector<std::string>& more) {
  return judge(fmt::format("sim-node-[0000-{:04}]\n", nodes - 1), more);
}

ProcessResult FleetRun::judge(const std::string& expected, const std::vector<std::string>& more) {
  const auto file = write("nodes.txt", expected);
  return runMuster(std::vector<std::string>{"fleet", (path() / "run").string(), "--expect", file.string(),
                                            "--out", (path() / "out").string()} +
                   more);
}

Json FleetRun::json() {
  return Json::parse(readWhole(path() / "out/fleet.json"));
}

std::vector<std::string> FleetRun::suspects(const std::string& kind) {
  std::vector<std::string> found;
  const Json fleet = json();
  for (const Json& suspect : fleet["suspects"])
    if (suspect["kind"] == kind) {
      const auto node = suspect["node"].get<std::string>(), what = suspect["what"].get<std::string>();
      found.push_back(node + (node.empty() || what.empty() ? "" : " ") + what);
      EXPECT_FALSE(suspect["evidence"].empty()) << found.back();
      EXPECT_FALSE(suspect["next"].get<std::string>().empty()) << found.back();
    }
  return found;
}

}  // namespace muster::testing
