// SPDX-License-Identifier: Apache-2.0
// `muster init`: what it writes is valid, short and accepted by a healthy machine; nothing is overwritten.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kContract = {"--source", "contract \"4711\" \\ EUR",
                                            "--min",    "compute.gemm_throughput{dtype=bf16}=620 TFLOP/s",
                                            "--min",    "memory.bandwidth{op=copy}=2.7 TB/s"};

TEST(Init, WritesAShortPlanThatAHealthyMachineMeets) {
  const TempDir dir;
  const std::string folder = (dir.path() / "new/site").string(), file = folder + "/plan.toml";

  const auto made =
      runMuster(std::vector<std::string>{"init", folder, "--sku", "h100-sxm5-80gb"} + kContract);
  ASSERT_EQ(made.exitCode, 0) << made.out << made.err;
  EXPECT_THAT(made.out, HasSubstr("muster explain " + file));
  const std::string text = readWhole(file) + readWhole(folder + "/site.toml");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << text;
  EXPECT_EQ(runMuster({"check", file}).exitCode, 0);
  const auto healthy = runMuster(
      {"run", file, "--simulate", scenario("h100x8-healthy"), "--out", (dir.path() / "good").string()});
  EXPECT_EQ(healthy.exitCode, 0) << healthy.out << healthy.err;
  const auto slow = runMuster(
      {"run", file, "--simulate", scenario("h100x8-one-slow-gpu"), "--out", (dir.path() / "slow").string()});
  EXPECT_EQ(slow.exitCode, 1);
  EXPECT_THAT(slow.out, HasSubstr("contract \"4711\" \\ EUR"));
}

TEST(Init, FindsTheProfileOfABoardByItsPciIds) {
  for (const auto& [id, sku] : {std::pair("0x2330", "h100-sxm5-80gb"), std::pair("0x2335", "h200-sxm")}) {
    const TempDir dir;
    for (const char* address : {"0000:18:00.0", "0000:2a:00.0"}) {
      const std::string device = std::string("bus/pci/devices/") + address + "/";
      dir.write(device + "vendor", "0x10de\n");
      dir.write(device + "device", std::string(id) + "\n");
      dir.write(device + "class", "0x030200\n");
    }
    const auto made =
        runProcess({"env", "MUSTER_SYSFS=" + dir.path().string(), (distDir() / "bin/muster").string(), "init",
                    (dir.path() / "site").string()});
    ASSERT_EQ(made.exitCode, 0) << made.out << made.err;
    EXPECT_THAT(readWhole(dir.path() / "site/plan.toml") + readWhole(dir.path() / "site/site.toml"),
                HasSubstr(sku));
  }
}

TEST(Init, OverwritesNothing) {
  for (const char* name : {"plan.toml", "site.toml"}) {
    const TempDir own;
    own.write(name, "mine");
    const auto made = runMuster({"init", own.path().string(), "--sku", "host"});
    EXPECT_EQ(made.exitCode, 2);
    EXPECT_THAT(made.err, HasSubstr("is there already"));
    EXPECT_EQ(readWhole(own.path() / name), "mine");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(own.path()), {}), 1);
  }
}

TEST(Init, LeavesNothingBehindAMistake) {
  struct {
    std::vector<std::string> options;
    const char* said;
  } const kWrong[] = {
      {{"--sku", "h100"}, "h100-sxm5-80gb"},
      {{"--sku", "host", "--name", "a b"}, "--name \"a b\""},
      {{"--sku", "host", "--min", "compute.gemm_throughput"}, "no value was given"},
      {{"--sku", "host", "--min", "compute.gem_throughput=1 FLOP/s"},
       "did you mean \"compute.gemm_throughput\"?"},
      {{"--sku", "host", "--min", "compute.gemm_throughput=1 GB/s"}, "GB/s"},
      {{"--sku", "host", "--min", "compute.gemm_throughput{dtyp=f32}=1 FLOP/s"}, "dtyp"},
      {{"--sku", "host", "--min", "compute.gemm_throughput{dtype=f32=1 FLOP/s"}, "no value was given"},
  };
  for (const auto& wrong : kWrong) {
    const TempDir dir;
    const auto made =
        runMuster(std::vector<std::string>{"init", (dir.path() / "x").string()} + wrong.options);
    EXPECT_EQ(made.exitCode, 2) << wrong.said << made.out;
    EXPECT_THAT(made.err, HasSubstr(wrong.said));
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "x/plan.toml")) << wrong.said;
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "x/site.toml")) << wrong.said;
  }
}

}  // namespace
}  // namespace muster::testing
