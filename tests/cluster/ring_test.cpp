// SPDX-License-Identifier: Apache-2.0
// The ring over real hosts and Gloo: nobody is named when all are well; a slow link and a slow host are.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRingHosts = 4;
// So slow that the few cores of one machine carry all hosts at once with time to spare: what a pair reaches
// is what its link allows, not what the scheduler left it.
constexpr const char* kHealthy = "100mbit";
constexpr double kShaped = 25e6;  ///< B/s; no pair gets through more than that, with the burst of its link
constexpr const char* kSlow = "10mbit";

// Wide noise floors, since tests run side by side: a healthy pair may lose half of its bandwidth and keep its
// good name, and a tenth is still far beyond. A latency here is what the scheduler makes of it.
constexpr const char* kRingPlan = R"(schema = 1
name = "ring"
sku = "auto"
backend = "host"

[[stage]]
name = "ring"
plugin = "ring"
test = "ring"
scope = "cluster"
ranks = 1
timeout = "80s"
[stage.params]
bytes = "512 KiB"
samples = 3
warmup = 1
confirm = "4s"
noise_floor = "20%"
latency_noise_floor = "500%"
)";

class ClusterRing : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    run_ = std::make_unique<ClusterRun>(kRingHosts, kRingPlan, std::vector<std::string>{});
    for (int host = 0; host < kRingHosts; ++host) run_->hosts.limit(host, kHealthy);
  }

  void hold() {
    run_->startAll();
    run_->finish();
  }

  /// What this host's record says is slow, or "none".
  [[nodiscard]] std::vector<std::string> culprits(int host) const {
    std::vector<std::string> found;
    for (const Measurement& m : run_->stage(host, "ring").measurements)
      if (m.metric == "ring.culprits") found.push_back(m.labels.at("culprit"));
    return found;
  }

  /// All of what the run said, for when it said something else than what it should.
  [[nodiscard]] std::string told(int host) const {
    std::string text = run_->ended(host).out + run_->ended(host).err;
    for (const Measurement& m : run_->stage(host, "ring").measurements) {
      text += m.metric;
      for (const auto& [key, value] : m.labels) text += fmt::format(" {}={}", key, value);
      text += fmt::format(": {} {}\n", fmt::join(m.samples, " "), m.isText() ? m.text : m.unit);
    }
    return text;
  }

  void expectAccepted(int host) const {
    EXPECT_EQ(run_->ended(host).exitCode, 0) << "host " << host << "\n" << told(host);
    EXPECT_EQ(culprits(host), std::vector<std::string>{"none"}) << "host " << host << "\n" << told(host);
  }

  void expectRejected(int host, const std::string& culprit) const {
    EXPECT_EQ(run_->ended(host).exitCode, 1) << "host " << host << "\n" << told(host);
    EXPECT_EQ(culprits(host), std::vector<std::string>{culprit}) << "host " << host << "\n" << told(host);
    EXPECT_THAT(run_->details(host, "ring"), HasSubstr(culprit)) << "host " << host;
  }

  std::unique_ptr<ClusterRun> run_;
};

TEST_F(ClusterRing, NamesNobodyWhenAllAreWell) {
  hold();
  for (int host = 0; host < kRingHosts; ++host) expectAccepted(host);
  std::string implementation;
  int pairs = 0;
  for (const Measurement& m : run_->stage(0, "ring").measurements) {
    if (m.metric == "ring.implementation") implementation = m.text;
    if (m.metric != "ring.pair_bandwidth") continue;
    ++pairs;
    for (const double sample : m.samples) EXPECT_LT(sample, kShaped) << told(0);
  }
  EXPECT_THAT(implementation, HasSubstr("gloo"));
  EXPECT_GE(pairs, kRingHosts) << told(0);
}

TEST_F(ClusterRing, NamesALinkAtATenth) {
  run_->hosts.limitLink(1, 2, kSlow);
  hold();
  // Node 0 tells for the whole group, the others what concerns themselves.
  for (const int host : {0, 1, 2}) expectRejected(host, "link n1 - n2");
  expectAccepted(3);
}

TEST_F(ClusterRing, NamesAHostAtATenth) {
  run_->hosts.limit(2, kSlow);
  hold();
  for (const int host : {0, 2}) expectRejected(host, "node n2");
  for (const int host : {1, 3}) expectAccepted(host);
}

}  // namespace
}  // namespace muster::testing
