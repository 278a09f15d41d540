// SPDX-License-Identifier: Apache-2.0
// Shipped plans on shipped scenarios: what is healthy is accepted, and what is faulty is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

struct Rehearsal {
  const char* plan;
  const char* scenario;
  int nodes;
  const char* failing;  ///< metric that fails; empty: accepted
  const char* device;
};

class ShippedPlan : public ::testing::TestWithParam<Rehearsal> {};

TEST_P(ShippedPlan, ComesToItsVerdict) {
  const auto [name, scene, nodes, failing, device] = GetParam();
  const TempDir dir;
  const auto out = dir.path() / "run";
  const auto result = runMuster({"run", plan(std::string(name) + ".toml"), "--simulate", scenario(scene),
                                 "--nodes", std::to_string(nodes), "--plain", "--out", out.string()});
  EXPECT_EQ(result.exitCode, failing[0] == '\0' ? 0 : 1) << result.out << result.err;
  const Record record = recordIn(nodes == 1 ? out : out / "sim-node-0000");
  const auto fails = verdictsOf(record, Outcome::kFail);
  EXPECT_TRUE(verdictsOf(record, Outcome::kError).empty()) << result.out;
  EXPECT_EQ(std::any_of(fails.begin(), fails.end(), [&](const Verdict& v) { return v.metric == failing; }),
            failing[0] != '\0')
      << result.out;
  if (device[0] == '\0') return;
  for (const Verdict& verdict : fails) EXPECT_EQ(verdict.device, device) << verdict.metric;
}

INSTANTIATE_TEST_SUITE_P(Cards, ShippedPlan,
                         ::testing::Values(Rehearsal{"node-quick", "a100-pcie-40gbx8-healthy", 1, "", ""},
                                           Rehearsal{"node-quick", "a100-pcie-80gbx8-healthy", 1, "", ""},
                                           Rehearsal{"node-quick", "h100-pciex8-healthy", 1, "", ""},
                                           Rehearsal{"node-quick", "h100-nvlx8-healthy", 1, "", ""},
                                           Rehearsal{"node-quick", "l40sx8-healthy", 1, "", ""},
                                           Rehearsal{"node-quick", "l4x8-healthy", 1, "", ""},
                                           Rehearsal{"node-quick", "rtx-pro-6000x8-healthy", 1, "", ""},
                                           Rehearsal{"compact", "t4x4-healthy", 1, "", ""},
                                           Rehearsal{"node-quick", "l40sx8-pcie-x8", 1,
                                                     "memory.host_to_device_bandwidth", ""}),
                         [](const auto& info) { return std::to_string(info.index); });

INSTANTIATE_TEST_SUITE_P(
    Plans, ShippedPlan,
    ::testing::Values(
        Rehearsal{"compact", "h100x8-cluster-healthy", 1, "", ""},
        Rehearsal{"compact", "h100x8-corrupt-sum", 1, "collective.collective_wrong_elements", ""},
        Rehearsal{"idle-hourly", "h100x8-healthy", 1, "", ""},
        Rehearsal{"idle-hourly", "h100x8-pcie-x8", 1, "memory.host_to_device_bandwidth", "gpu3"},
        Rehearsal{"kuberay-smoke", "h100x8-cluster-healthy", 2, "", ""},
        Rehearsal{"a4-gke", "a4x8-cluster-healthy", 2, "", ""},
        Rehearsal{"a4-gke", "a4x8-cluster-healthy", 8, "", ""},
        Rehearsal{"storage", "h100x8-hca-healthy", 1, "", ""},
        Rehearsal{"storage", "h100x8-hca-healthy", 8, "", ""},
        Rehearsal{"node-full", "h100x8-hca-slow", 1, "rdma.line_rate_share", ""},
        Rehearsal{"node-full", "h100x8-corrupt-sum", 1, "collective.collective_wrong_elements", ""}),
    [](const auto& info) { return std::to_string(info.index); });

/// Every setting is named that NCCL did not take, and so are the sockets.
TEST(ShippedPlans, A4RejectsAnImageWithoutGib) {
  const TempDir dir;
  const auto out = dir.path() / "run";
  const auto result = runMuster({"run", plan("a4-gke.toml"), "--simulate", scenario("a4x8-cluster-no-gib"),
                                 "--nodes", "2", "--plain", "--out", out.string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  std::set<std::string> failing;
  for (const Verdict& verdict : verdictsOf(recordIn(out / "sim-node-0000"), Outcome::kFail))
    failing.insert(verdict.metric);
  for (const char* metric : {"collective.unconfirmed_settings", "collective.transport",
                             "collective.large_message_bus_bandwidth", "collective.gpudirect_rdma"})
    EXPECT_EQ(failing.count(metric), 1u) << metric << result.out;
}

/// Neither the plan nor a profile's name makes it a tested GPU.
TEST(ShippedPlans, NeverAcceptAGpuOfAnotherVendor) {
  const TempDir dir;
  std::string text = readWhole(scenario("h100x8-healthy"));
  text.replace(text.find("10de:2330"), 9, "1002:74a1");
  const auto file = dir.write("amd.toml", text).string();
  std::string allowing = readWhole(plan("node-quick.toml"));
  allowing.replace(allowing.find("name = "), 0, "allow_unknown_sku = true\n");
  std::filesystem::copy(std::filesystem::path(plan("node-quick.toml")).parent_path() / "common",
                        dir.path() / "common");
  for (const std::vector<std::string>& options : {std::vector<std::string>{plan("node-quick.toml")},
                                                  {plan("node-quick.toml"), "--sku", "h100-sxm5-80gb"},
                                                  {dir.write("allowing.toml", allowing).string()}}) {
    std::vector<std::string> words = {"run",   "--simulate",
                                      file,    "--plain",
                                      "--out", (dir.path() / std::to_string(options.size())).string()};
    words.insert(words.end(), options.begin(), options.end());
    const auto result = runMuster(words);
    EXPECT_TRUE(result.exitCode == 1 || result.exitCode == 3) << result.exitCode << result.out << result.err;
    EXPECT_NE(result.out.find("unknown vendor"), std::string::npos) << result.out;
    std::filesystem::remove_all(dir.path() / std::to_string(options.size()));
  }
}

}  // namespace
}  // namespace muster::testing
