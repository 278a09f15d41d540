// SPDX-License-Identifier: Apache-2.0
// Same-rail pairs of RDMA ports between hosts. Each host has a made-up tree of its own, and a program that
// behaves like perftest and really talks to its peer over TCP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/cluster/cluster_run.h"
#include "tests/support/fake_hcas.h"

namespace muster::testing {
namespace {

constexpr int kRdmaHosts = 2;

constexpr const char* kRdmaPlan = R"(schema = 1
name = "rails"
sku = "auto"
backend = "host"

[[stage]]
name = "rails"
plugin = "rdma"
test = "perftest"
scope = "cluster"
ranks = 1
timeout = "60s"
[stage.params]
interface = "eth0"
samples = 1
[[stage.expect]]
metric = "rdma.line_rate_share"
min = "90%"
source = "test"
remedy = "test"
[[stage.expect]]
metric = "rdma.send_latency"
max = "10us"
source = "test"
remedy = "test"
)";

class ClusterRdma : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    for (FakeHcas& hcas : hcas_) hcas.add("mlx5_0");
  }

  void hold() {
    for (int host = 0; host < kRdmaHosts; ++host) {
      ProcessOptions options;
      options.environment = hcas_.at(static_cast<size_t>(host)).environment();
      run_.start(host, host, {}, options);
    }
    run_.finish();
  }

  [[nodiscard]] std::string said(int host) const { return run_.ended(host).out + run_.ended(host).err; }

  /// Ports with a failed expectation as this host's record has it.
  [[nodiscard]] std::vector<std::string> failed(int host) const {
    std::vector<std::string> ports;
    for (const Verdict& verdict : run_.stage(host, "rails").verdicts)
      if (verdict.outcome == Outcome::kFail) ports.push_back(verdict.labels.at("port"));
    return ports;
  }

  std::array<FakeHcas, kRdmaHosts> hcas_;
  ClusterRun run_{kRdmaHosts, kRdmaPlan, {}};
};

TEST_F(ClusterRdma, AcceptsHealthyRails) {
  for (FakeHcas& hcas : hcas_) hcas.add("mlx5_1");
  hold();
  for (int host = 0; host < kRdmaHosts; ++host) {
    EXPECT_EQ(run_.ended(host).exitCode, 0) << said(host);
    int pairs = 0;
    for (const Verdict& verdict : run_.stage(host, "rails").verdicts)
      if (verdict.metric == "rdma.line_rate_share") {
        ++pairs;
        EXPECT_EQ(verdict.labels.at("path"), "pair");
        EXPECT_EQ(verdict.labels.at("peer"), std::to_string(1 - host));
      }
    EXPECT_EQ(pairs, 2) << said(host);
  }
}

TEST_F(ClusterRdma, NamesThePortOfTheHostThatHasASlowOne) {
  hcas_[0].add("mlx5_1");
  hcas_[1].add("mlx5_1", "ok", 200);
  hold();
  EXPECT_EQ(run_.ended(1).exitCode, 1) << said(1);
  EXPECT_EQ(failed(1), std::vector<std::string>{"mlx5_1/1"}) << said(1);
  EXPECT_EQ(run_.stage(0, "rails").group.value("world_size", 0), kRdmaHosts) << said(0);
}

}  // namespace
}  // namespace muster::testing
