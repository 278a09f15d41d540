// SPDX-License-Identifier: Apache-2.0
// fabric = "auto" over hosts, each of which sees made-up RDMA devices of its own: all must choose alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/cluster/cluster_run.h"
#include "tests/support/fake_hcas.h"

namespace muster::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kFabricHosts = 2;

constexpr const char* kFabricPlan = R"(schema = 1
name = "fabric"
sku = "auto"
backend = "host"

[[stage]]
name = "sweep"
test = "collective.sweep"
scope = "cluster"
ranks = 1
timeout = "60s"
params = { op = "all_reduce", from = "1 KiB", to = "16 KiB", factor = 4.0, iterations = 3, fabric = "auto" }
)";

/// Runs its arguments with a /sys of the host's own network, whose RDMA devices are those of the folder HCAS.
constexpr const char* kWithHcas = R"(exec unshare --mount sh -e -c '
mkdir "$HCAS/new" "$HCAS/classes"
mount -t sysfs none "$HCAS/new"
mount --rbind /sys/fs/cgroup "$HCAS/new/fs/cgroup"
mount --rbind "$HCAS/new" /sys
cp -a /sys/class/. "$HCAS/classes" 2>/dev/null || true  # classes are links, but for files that nobody can read
cp -a "$HCAS/class/infiniband" "$HCAS/classes"
mount --bind "$HCAS/classes" /sys/class
exec "$@"' sh "$@")";

class ClusterFabric : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    run_.emplace(kFabricHosts, kFabricPlan, std::vector<std::string>{});
    run_->wrapper = {"sh", "-c", kWithHcas, "sh"};
  }

  void startAll() {
    for (int host = 0; host < kFabricHosts; ++host) {
      ProcessOptions options;
      options.environment["HCAS"] = hcas_[host].sysfs();
      run_->start(host, host, {}, options);
    }
  }
  std::string textOf(int host, const std::string& metric) const {
    for (const Measurement& m : run_->stage(host, "sweep").measurements)
      if (m.metric == metric) return m.text;
    return "";
  }

  FakeHcas hcas_[kFabricHosts];  ///< no device at first
  std::optional<ClusterRun> run_;
};

TEST_F(ClusterFabric, IsTheOneThatTheNicsOfAllHostsSay) {
  for (FakeHcas& hcas : hcas_) hcas.add("mlx5_0");
  startAll();
  run_->finish();
  for (int host = 0; host < kFabricHosts; ++host)
    EXPECT_EQ(run_->ended(host).exitCode, 0) << run_->ended(host).out << run_->ended(host).err;
  EXPECT_EQ(textOf(0, "collective.fabric"), "ib");
  EXPECT_THAT(textOf(0, "collective.fabric_evidence"), HasSubstr("active RDMA ports: 1 InfiniBand"));
}

TEST_F(ClusterFabric, IsNoneWithoutNics) {
  startAll();
  run_->finish();
  for (int host = 0; host < kFabricHosts; ++host)
    EXPECT_EQ(run_->ended(host).exitCode, 0) << run_->ended(host).out << run_->ended(host).err;
  EXPECT_EQ(textOf(0, "collective.fabric"), "none");
}

TEST_F(ClusterFabric, NamesTheHostWhoseNicsSayAnother) {
  hcas_[0].add("mlx5_0");
  startAll();
  run_->finish();
  for (int host = 0; host < kFabricHosts; ++host) {
    EXPECT_EQ(run_->ended(host).exitCode, 3) << run_->ended(host).out << run_->ended(host).err;
    // The others have only rank 0's word for it.
    std::string told = "those of rank 0 (on \"n0\") say ib (\"active RDMA ports: 1 InfiniBand";
    std::string other = "those of rank 1 (on \"n1\") say none (\"no RDMA device";
    if (host != 0) {
      std::replace(told.begin(), told.end(), '"', '\'');
      std::replace(other.begin(), other.end(), '"', '\'');
      EXPECT_THAT(run_->details(host, "sweep"), HasSubstr("rank 0 says: \"of 1 of 2 ranks"));
    }
    EXPECT_THAT(run_->details(host, "sweep"), AllOf(HasSubstr(told), HasSubstr(other)));
  }
}

}  // namespace
}  // namespace muster::testing
