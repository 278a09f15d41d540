// SPDX-License-Identifier: Apache-2.0
// Same-rail pairs of RDMA ports between hosts. Each host has a made-up tree of its own, and a program that
// behaves like perftest and really talks to its peer over TCP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/cluster/cluster_run.h"
#include "tests/support/fake_hcas.h"

namespace muster::testing {
namespace {

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
  explicit ClusterRdma(int hosts = 2)
      : hosts_(hosts), hcas_(static_cast<size_t>(hosts)), run_(hosts, kRdmaPlan, {}) {}

  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    for (FakeHcas& hcas : hcas_) hcas.add("mlx5_0");
  }

  void hold() {
    for (int host = 0; host < hosts_; ++host) {
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

  const int hosts_;
  std::deque<FakeHcas> hcas_;
  ClusterRun run_;
};

class ClusterRdmaOfThree : public ClusterRdma {
 protected:
  ClusterRdmaOfThree() : ClusterRdma(3) {}
};

TEST_F(ClusterRdma, AcceptsHealthyRails) {
  for (FakeHcas& hcas : hcas_) hcas.add("mlx5_1");
  hold();
  for (int host = 0; host < hosts_; ++host) {
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
  EXPECT_EQ(run_.stage(0, "rails").group.value("world_size", 0), hosts_) << said(0);
}

/// Its error is its own, that of the others is another node's.
TEST_F(ClusterRdmaOfThree, NamesTheHostThatLacksAPort) {
  hcas_[0].add("mlx5_1");
  hcas_[2].add("mlx5_1");
  hold();
  for (int host = 0; host < hosts_; ++host) {
    EXPECT_EQ(run_.ended(host).exitCode, 3) << said(host);
    EXPECT_THAT(run_.stage(host, "rails").group.value("culprit", ""),
                ::testing::StartsWith("rank 1 (cpu0 of node 1 (n1)) failed: this node (rank 1) has 1 RDMA"))
        << said(host);
  }
}

}  // namespace
}  // namespace muster::testing
