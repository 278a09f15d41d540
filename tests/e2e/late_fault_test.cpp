// SPDX-License-Identifier: Apache-2.0
// Faults that begin late in a stage: the median of its samples looks healthy, its worst stretch of time does
// not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Runs of one plan on eight simulated GPUs.
class LateFault : public ::testing::Test {
 protected:
  ProcessResult simulate(const std::string& planName, const std::string& faults, const std::string& out) {
    const auto path = dir_.path() / (out + ".toml");
    writeScenario(path, readWhole(scenario("h100x8-cluster-healthy")) + faults);
    return runMuster({"run", plan(planName), "--simulate", path.string(), "--out", folder(out)});
  }

  [[nodiscard]] std::string folder(const std::string& out) const { return (dir_.path() / out).string(); }

  /// When a stage begins, and for how long it runs, in the virtual seconds of a healthy run.
  std::pair<double, double> timesOf(const std::string& planName, const std::string& stage) {
    if (!std::filesystem::exists(folder("healthy"))) {
      const auto result = simulate(planName, "", "healthy");
      EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
    }
    double begin = 0;
    for (const StageRecord& one : recordIn(folder("healthy")).stages) {
      if (one.name == stage) return {begin, one.duration};
      begin += one.duration;
    }
    ADD_FAILURE() << "no stage " << stage;
    return {};
  }

  /// gpu5 at `factor` of its speed from this share of a stage on, until the stage ends.
  std::string slowFrom(const std::string& planName, const std::string& stage, double share, double factor) {
    const auto [begin, duration] = timesOf(planName, stage);
    return fmt::format(
        "\n[[fault]]\nkind = \"slow\"\ndevice = 5\nfrom = \"{}s\"\nuntil = \"{}s\"\nfactor = {}\n",
        begin + share * duration, begin + duration, factor);
  }

  void expectNamed(const std::string& out, const std::string& stage, const std::string& metric) {
    const auto fails = verdictsOf(recordIn(folder(out)), Outcome::kFail);
    EXPECT_FALSE(fails.empty()) << stage;
    for (const Verdict& v : fails) EXPECT_EQ(v.device, "gpu5") << v.stage << ": " << v.detail;
    EXPECT_TRUE(std::any_of(fails.begin(), fails.end(),
                            [&](const Verdict& v) {
                              return v.stage == stage && v.metric == metric &&
                                     v.expectation->kind == CheckKind::kDropMax;
                            }))
        << stage << " " << metric;
  }

  TempDir dir_;
};

TEST_F(LateFault, InTheLastThirdOfTheStressTestIsRejectedAndShownEverywhere) {
  const auto result =
      simulate("node-quick.toml", slowFrom("node-quick.toml", "sustained", 0.67, 0.05), "late");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  expectNamed("late", "sustained", "compute.sustained_throughput");
  const std::string said = "below its own level of";
  EXPECT_TRUE(contains(result.out, said)) << result.out;
  EXPECT_TRUE(contains(readWhole(dir_.path() / "late" / "report.html"), said));
  EXPECT_TRUE(contains(readWhole(dir_.path() / "late" / "junit.xml"), said));

  // The stored samples give the same verdicts, and others under another limit.
  const auto again = runMuster({"judge", folder("late") + "/record.json", "--out", folder("again")});
  EXPECT_EQ(again.exitCode, 1) << again.out << again.err;
  const auto texts = [&](const std::string& out) {
    std::vector<std::string> all;
    for (const Verdict& v : verdictsOf(recordIn(folder(out)), Outcome::kFail)) all.push_back(v.detail);
    return all;
  };
  EXPECT_EQ(texts("again"), texts("late"));
}

TEST_F(LateFault, OfOneWindowIsRejected) {
  const auto [begin, duration] = timesOf("node-quick.toml", "sustained");
  const std::string fault = fmt::format(
      "\n[[fault]]\nkind = \"slow\"\ndevice = 5\nfrom = \"{}s\"\nuntil = \"{}s\"\nfactor = 0.05\nops = "
      "[\"gemm\"]\n",
      begin + duration / 2, begin + duration / 2 + 1);
  EXPECT_EQ(simulate("node-quick.toml", fault, "short").exitCode, 1);
  expectNamed("short", "sustained", "compute.sustained_throughput");
}

TEST_F(LateFault, OfFortyPercentInTheLongStressTestIsRejected) {
  EXPECT_EQ(simulate("node-full.toml", slowFrom("node-full.toml", "sustained", 0.8, 0.6), "late").exitCode,
            1);
  expectNamed("late", "sustained", "compute.sustained_throughput");
}

TEST_F(LateFault, InTheClustersStressTestIsRejected) {
  EXPECT_EQ(simulate("cluster.toml", slowFrom("cluster.toml", "burn", 0.75, 0.3), "late").exitCode, 1);
  expectNamed("late", "burn", "compute.sustained_throughput");
}

TEST_F(LateFault, OfTwentyPercentWithinTheMedianOfPeersIsRejectedByTheDropAlone) {
  EXPECT_EQ(simulate("node-quick.toml", slowFrom("node-quick.toml", "sustained", 0.67, 0.8), "late").exitCode,
            1);
  expectNamed("late", "sustained", "compute.sustained_throughput");
}

TEST_F(LateFault, InAShortMeasurementIsRejectedToo) {
  for (const char* stage : {"gemm", "memory"}) {
    const auto fault = slowFrom("node-quick.toml", stage, 0.9, 0.1);
    EXPECT_EQ(simulate("node-quick.toml", fault, stage).exitCode, 1) << stage;
  }
}

/// A device that kills every process that touches it, from one stage on: its peers' ranks die or are stopped
/// with it, and none of their devices is to blame.
TEST_F(LateFault, ThatKillsProcessesIsBlamedOnNoOtherDevice) {
  const auto [begin, duration] = timesOf("node-quick.toml", "memory");
  const std::string fault =
      fmt::format("\n[[fault]]\nkind = \"crash\"\ndevice = 5\nat = \"{}s\"\n", begin + duration / 2);
  EXPECT_EQ(simulate("node-quick.toml", fault, "crash").exitCode, 3);
  const auto errors = verdictsOf(recordIn(folder("crash")), Outcome::kError);
  for (const char* stage : {"memory", "host-copy", "peer"})
    EXPECT_TRUE(std::any_of(errors.begin(), errors.end(), [&](const Verdict& v) {
      return v.stage == stage && contains(v.detail, "gpu5");
    })) << stage;
  for (const Verdict& v : errors)
    EXPECT_TRUE(v.device.empty() || contains(v.detail, "gpu5"))
        << v.stage << " " << v.device << ": " << v.detail;
}

TEST_F(LateFault, IsNotSeenInHealthyRuns) {
  for (const std::string name :
       {"node-quick.toml", "node-full.toml", "cluster.toml", "nccl.toml", "burn-in.toml"}) {
    // Two of the 22 hours: all of them take most of a minute to compute, and far more on a busy machine.
    std::vector<std::string> shorter;
    if (name == "burn-in.toml") shorter = {"--set", "sustained.duration=2h"};
    for (int seed = 1; seed <= 3; ++seed) {
      const auto out = dir_.path() / fmt::format("{}{}", name, seed);
      const auto result = runMuster(std::vector<std::string>{"run", plan(name), "--simulate",
                                                             scenario("h100x8-cluster-healthy"), "--seed",
                                                             std::to_string(seed), "--out", out.string()} +
                                    shorter);
      EXPECT_EQ(result.exitCode, 0) << name << " seed " << seed << "\n" << result.out << result.err;
      for (const Verdict& v : verdictsOf(recordIn(out), Outcome::kWarn))
        EXPECT_NE(v.expectation->kind, CheckKind::kDropMax) << name << ": " << v.detail;
    }
  }
}

}  // namespace
}  // namespace muster::testing
