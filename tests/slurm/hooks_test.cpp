// SPDX-License-Identifier: Apache-2.0
// The programs that Slurm calls on its nodes, run as Slurm does, on a real Slurm.
#include <fmt/format.h>

#include <fstream>

#include "tests/slurm/slurm_run.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SlurmHooks : public SlurmTest {
 protected:
  /// Writes the hooks for a plan; returns their folder.
  static fs::path write(const fs::path& plan) {
    static int number = 0;
    const fs::path folder = slurm().shared() / fmt::format("hooks-{}", ++number);
    const ProcessResult result = slurm().muster(
        {"hooks", plan.string(), "--out", folder.string(), "--keep", (folder / "keep").string()});
    EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
    return folder;
  }
  /// A product of matrices that no machine does as fast as this plan wants.
  static fs::path impossiblePlan() {
    const fs::path plan = slurm().shared() / "impossible.toml";
    std::ofstream(plan)
        << "schema = 1\nname = \"hook\"\nsku = \"host\"\nbackend = \"host\"\n[[stage]]\nname = \"gemm\"\n"
           "plugin = \"compute\"\ntest = \"gemm\"\ntimeout = \"40s\"\n[stage.params]\nsize = 128\ndtype = "
           "\"f32\"\nwarmup = \"10ms\"\nmin_time = \"50ms\"\nmax_time = \"100ms\"\n[[stage.expect]]\n"
           "metric = \"compute.gemm_throughput\"\nmin = \"900000 TFLOP/s\"\nsource = \"this test\"\n";
    return plan;
  }
  static ProcessResult call(const fs::path& hook, const std::string& node) {
    return slurm().command({hook.string()}, 60, {{"SLURMD_NODENAME", node}});
  }
};

TEST_F(SlurmHooks, DrainARejectedNodeWithOurReason) {
  const fs::path hooks = write(impossiblePlan());
  for (const char* kind : {"health_check", "prolog", "epilog"}) {
    slurm().tidy();
    EXPECT_EQ(call(hooks / (std::string(kind) + ".sh"), "node1").exitCode, 0)
        << "a hook that fails makes Slurm drain without our reason";
    EXPECT_EQ(slurm().state("node1"), "drained") << readWhole(hooks / "keep" / kind / "log");
    EXPECT_THAT(slurm().reason("node1"), StartsWith(fmt::format("muster: {}: rejected", kind)));
  }
}

TEST_F(SlurmHooks, LeaveAnAcceptedNodeAndOneThatSomebodyDrained) {
  const fs::path good = write(waitingPlan(1)), bad = write(impossiblePlan());
  EXPECT_EQ(call(good / "health_check.sh", "node1").exitCode, 0);
  EXPECT_EQ(slurm().state("node1"), "idle") << readWhole(good / "keep" / "health_check" / "log");
  slurm().set("node2", "DRAIN", "being repaired");
  EXPECT_EQ(call(bad / "health_check.sh", "node2").exitCode, 0);
  EXPECT_EQ(slurm().reason("node2"), "being repaired");
}

TEST_F(SlurmHooks, RefuseATimeThatSlurmDoesNotGive) {
  const ProcessResult result =
      slurm().muster({"hooks", quickPlan().string(), "--out", newRun().string(), "--time", "55s"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("kills a HealthCheckProgram after 60 s"));
}

}  // namespace
}  // namespace muster::testing
