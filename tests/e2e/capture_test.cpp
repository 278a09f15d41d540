// SPDX-License-Identifier: Apache-2.0
// `muster capture`: a run of its scenario comes to the same verdicts as the run that it was captured from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// How often each outcome was given, by stage, device, metric and requirement. Not of HCAs, which a capture
/// leaves out.
using Outcomes = std::map<std::tuple<std::string, std::string, std::string, std::string, std::string>, int>;

Outcomes outcomesOf(const fs::path& run) {
  Outcomes all;
  for (const StageRecord& stage : recordIn(run).stages)
    for (const Verdict& v : stage.verdicts)
      if (!v.metric.starts_with("env.rdma_") && !v.metric.starts_with("env.hca_"))
        ++all[{stage.name, outcomeName(v.outcome), v.device, v.metric,
               v.expectation ? v.expectation->text() : ""}];
  return all;
}

class Capture : public ::testing::Test {
 protected:
  ProcessResult run(const std::string& plan, const std::string& scene, const std::string& out) {
    return runMuster({"run", testing::plan(plan), "--simulate", scene, "--plain", "--out", path(out)});
  }
  ProcessResult capture(const std::string& from, const std::string& to) {
    return runMuster({"capture", path(from) + "/record.json", "--out", path(to)});
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  TempDir dir_;
};

TEST_F(Capture, ComesToTheSameVerdicts) {
  const std::pair<const char*, const char*> all[] = {
      {"node-quick.toml", "h100x8-healthy"},     {"node-quick.toml", "h100x8-one-slow-gpu"},
      {"node-quick.toml", "h100x8-missing-gpu"}, {"node-quick.toml", "h100x8-slow-peer"},
      {"node-quick.toml", "h100x8-pcie-x8"},     {"node-quick.toml", "gb200x4-healthy"}};
  for (const auto& [plan, scene] : all) {
    const std::string real = std::string("real-") + scene, again = std::string("again-") + scene;
    const int code = run(plan, scenario(scene), real).exitCode;
    const auto captured = capture(real, real + ".toml");
    ASSERT_EQ(captured.exitCode, 0) << captured.err;
    EXPECT_THAT(captured.out, Not(HasSubstr("not captured"))) << scene;
    EXPECT_EQ(run(plan, path(real + ".toml"), again).exitCode, code) << scene;
    EXPECT_EQ(outcomesOf(path(again)), outcomesOf(path(real))) << scene;
  }
}

TEST_F(Capture, ShowsADeviceAsItsLastAttemptDid) {
  dir_.write("healthy.toml", readWhole(scenario("h100x8-healthy")));
  const auto faults = dir_.write(
      "faults.toml",
      "schema = 1\nname = \"once\"\ninclude = [\"healthy.toml\"]\n[[fault]]\nkind = \"slow\"\ndevice = 5\n"
      "factor = 0.5\nuntil = \"3s\"\nops = [\"gemm\"]\n");
  const auto plan = dir_.write(
      "plan.toml",
      "schema = 1\nname = \"tried\"\n[[stage]]\nname = \"gemm\"\ntest = \"compute.gemm\"\nattempts = 3\n"
      "allow_flaky = true\nparams = { size = 8192, dtype = \"bf16\" }\n[[stage]]\nname = \"memory\"\n"
      "test = \"memory.bandwidth\"\n");
  const auto runOf = [&](const std::string& scene, const std::string& out) {
    return runMuster({"run", plan.string(), "--simulate", scene, "--plain", "--out", path(out)});
  };
  const auto real = runOf(faults.string(), "real");
  ASSERT_EQ(real.exitCode, 0) << real.out << real.err;
  ASSERT_THAT(real.out, HasSubstr("flaky"));
  ASSERT_EQ(capture("real", "real.toml").exitCode, 0);
  const auto again = runOf(path("real.toml"), "again");
  EXPECT_EQ(again.exitCode, 0) << again.out << again.err;
}

TEST_F(Capture, SaysWhatItCannotShowAndKeepsNoSerialNumber) {
  EXPECT_EQ(run("node-quick.toml", scenario("h100x8-throttling"), "hot").exitCode, 1);
  const auto captured = capture("hot", "hot.toml");
  EXPECT_EQ(captured.exitCode, 0) << captured.err;
  EXPECT_THAT(captured.out, HasSubstr("failed in the record, and not captured: env.throttle_thermal"));
  const std::string text = readWhole(path("hot.toml"));
  EXPECT_THAT(text, HasSubstr("# Failed in the record and not captured: env.throttle_thermal"));
  EXPECT_THAT(text, HasSubstr("Captured SIMULATED values"));
  const Record record = recordIn(path("hot"));
  for (const Json& device : record.inventory["devices"])
    for (const char* key : {"serial", "uuid", "pci_address"})
      EXPECT_THAT(text, Not(HasSubstr(device.value(key, "?")))) << key;
  const auto twice = capture("hot", "hot.toml");
  EXPECT_EQ(twice.exitCode, 2);
  EXPECT_THAT(twice.err, HasSubstr("exists already"));
}

/// The path of the plan is the record's word.
TEST_F(Capture, PrintsACommandThatRunsNothingElse) {
  copyIncluded(".", dir_.path());
  const fs::path odd = dir_.write("plan; touch x.toml", readWhole(testing::plan("node-quick.toml")));
  ASSERT_EQ(runMuster({"run", odd.string(), "--simulate", scenario("h100x8-healthy"), "--plain", "--out",
                       path("odd")})
                .exitCode,
            0);
  EXPECT_THAT(capture("odd", "odd.toml").out, HasSubstr("`muster run '" + odd.string() + "' --simulate "));
}

TEST_F(Capture, RefusesRecordsWithoutRatesAndEditedOnes) {
  EXPECT_EQ(run("rdma.toml", scenario("h100x8-hca-healthy"), "ports").exitCode, 0);
  const auto ports = capture("ports", "ports.toml");
  EXPECT_EQ(ports.exitCode, 2);
  EXPECT_THAT(ports.err, HasSubstr("the record has no compute.gemm_throughput"));
  EXPECT_FALSE(fs::exists(path("ports.toml")));
  const auto none = runMuster({"capture", path("nowhere/record.json")});
  EXPECT_EQ(none.exitCode, 2);
}

}  // namespace
}  // namespace muster::testing
