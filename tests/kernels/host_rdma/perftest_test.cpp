// SPDX-License-Identifier: Apache-2.0
// perftest under supervision: a program that behaves like it, in good and in bad ways.
#include "kernels/host/rdma/perftest.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "kernels/host/rdma/host_rdma.h"
#include "runner/core/clock.h"
#include "tests/support/fake_hcas.h"

namespace muster {
namespace {

using testing::FakeHcas;

RdmaTransfer transferOn(const std::string& device, RdmaMethod method = RdmaMethod::kWriteBandwidth) {
  RdmaTransfer transfer;
  transfer.device = device;
  transfer.method = method;
  transfer.timeout = 20;
  return transfer;
}

RdmaOptions optionsOf(const FakeHcas& hcas) {
  return {.sysfs = hcas.sysfs(), .engineFolder = hcas.programs()};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Perftest, MeasuresAPortAgainstItself) {
  FakeHcas hcas;
  hcas.add("mlx5_0", "ok", 391.5, 1.75);
  const Perftest perftest(optionsOf(hcas));
  const auto bandwidth = perftest.loopback(transferOn("mlx5_0"));
  ASSERT_TRUE(bandwidth.ok()) << bandwidth.error().text();
  EXPECT_DOUBLE_EQ(bandwidth->bandwidth, 391.5e9 / 8);
  const auto latency = perftest.loopback(transferOn("mlx5_0", RdmaMethod::kSendLatency));
  ASSERT_TRUE(latency.ok()) << latency.error().text();
  EXPECT_DOUBLE_EQ(latency->latency, 1.75e-6);
}

TEST(Perftest, TellsItsVersion) {
  FakeHcas hcas;
  const auto version = Perftest(optionsOf(hcas)).version(RdmaMethod::kWriteBandwidth);
  ASSERT_TRUE(version.ok()) << version.error().text();
  EXPECT_EQ(*version, "perftest 6.06 (" + hcas.programs() + "/ib_write_bw)");
}

TEST(Perftest, NamesThePackageWhenItIsNotInstalled) {
  const testing::TempDir empty;
  for (const auto& status : {Perftest({.engineFolder = empty.path()}).version(RdmaMethod::kSendLatency)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
    EXPECT_TRUE(contains(status.error().message, "ib_send_lat")) << status.error().message;
    EXPECT_TRUE(contains(status.error().message, "apt-get install perftest"));
  }
  EXPECT_EQ(Perftest({.engineFolder = empty.path()}).loopback(transferOn("mlx5_0")).error().code,
            ErrorCode::kNotFound);
}

TEST(Perftest, TakesPartInAPair) {
  FakeHcas hcas;
  hcas.add("mlx5_0", "ok", 200);
  const Perftest perftest(optionsOf(hcas));
  Result<RdmaFigure> figure = Error{};
  std::thread client;
  const Status served = perftest.serve(transferOn("mlx5_0"), [&](int tcpPort) -> Status {
    client =
        std::thread([&, tcpPort] { figure = perftest.connect(transferOn("mlx5_0"), "127.0.0.1", tcpPort); });
    return {};
  });
  client.join();
  EXPECT_TRUE(served.ok()) << served.error().text();
  ASSERT_TRUE(figure.ok()) << figure.error().text();
  EXPECT_DOUBLE_EQ(figure->bandwidth, 25e9);
}

TEST(Perftest, SaysWhomItCouldNotReach) {
  FakeHcas hcas;
  hcas.add("mlx5_0");
  const auto figure = Perftest(optionsOf(hcas)).connect(transferOn("mlx5_0"), "127.0.0.1", 1);
  ASSERT_FALSE(figure.ok());
  EXPECT_TRUE(contains(figure.error().message, "client on mlx5_0/1")) << figure.error().message;
  EXPECT_TRUE(contains(figure.error().message, "Couldn't connect to 127.0.0.1:1"));
}

struct Misbehaviour {
  const char* name;
  const char* words;  ///< of the error
};

class BadPerftest : public ::testing::TestWithParam<Misbehaviour> {};

TEST_P(BadPerftest, IsAnErrorThatNamesPortSideAndReason) {
  FakeHcas hcas;
  hcas.add("mlx5_7", GetParam().name);
  RdmaTransfer transfer = transferOn("mlx5_7");
  const std::string name = GetParam().name;
  if (contains(name, "hang") || contains(name, "deaf")) transfer.timeout = 1;
  const double start = systemClock().now();
  const auto figure = HostRdma(optionsOf(hcas)).loopback(transfer);
  ASSERT_FALSE(figure.ok());
  EXPECT_TRUE(contains(figure.error().text(), "mlx5_7/1")) << figure.error().text();
  EXPECT_TRUE(contains(figure.error().text(), GetParam().words)) << figure.error().text();
  EXPECT_LT(systemClock().now() - start, 15);
  EXPECT_TRUE(testing::processesWith(hcas.programs()).empty());
}

INSTANTIATE_TEST_SUITE_P(
    Perftest, BadPerftest,
    ::testing::Values(Misbehaviour{"hang", "(client on mlx5_7/1) did not end within 1 s and was killed"},
                      Misbehaviour{"server-hang", "did not end within 1 s and was killed"},
                      Misbehaviour{"deaf", "(client on mlx5_7/1) did not end"},
                      Misbehaviour{"server-deaf", "(server on mlx5_7/1) did not end"},
                      Misbehaviour{"crash", "(client on mlx5_7/1) was killed by signal 11 (SIGSEGV)"},
                      Misbehaviour{"server-crash", "signal 11 (SIGSEGV)"},
                      Misbehaviour{"fail", "Failed status 12"},
                      Misbehaviour{"flood", "(client on mlx5_7/1) printed more than 64 KiB"},
                      Misbehaviour{"server-flood", "(server on mlx5_7/1) printed more than 64 KiB"},
                      Misbehaviour{"garbage", "#bytes of garbage"},
                      Misbehaviour{"silent", "no table of results: it printed"},
                      Misbehaviour{"two-tables", "2 tables"},
                      Misbehaviour{"wrong-size", "messages of 2097152 B"}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Perftest, SaysThatADeviceIsNotThere) {
  FakeHcas hcas;
  const auto figure = Perftest(optionsOf(hcas)).loopback(transferOn("mlx5_9"));
  ASSERT_FALSE(figure.ok());
  EXPECT_TRUE(contains(figure.error().message, "Unable to find the Infiniband/RoCE device"));
}

TEST(Perftest, EndsSoonWhenItIsCancelled) {
  FakeHcas hcas;
  hcas.add("mlx5_0", "hang");
  const double start = systemClock().now();
  RdmaOptions options = optionsOf(hcas);
  options.cancelled = [&] { return systemClock().now() > start + 0.2; };
  const auto figure = Perftest(options).loopback(transferOn("mlx5_0"));
  ASSERT_FALSE(figure.ok());
  EXPECT_TRUE(contains(figure.error().message, "cancelled")) << figure.error().message;
}

TEST(Perftest, CannotUseGpuMemoryWithoutCuda) {
  FakeHcas hcas;
  hcas.add("mlx5_0");
  RdmaTransfer transfer = transferOn("mlx5_0");
  transfer.gpu = 0;
  const Perftest perftest(optionsOf(hcas));
  const auto refused = perftest.loopback(transfer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(contains(refused.error().message, "without CUDA")) << refused.error().message;
  hcas.configure("cuda");
  hcas.folder().write("sys/module/nvidia_peermem/refcnt", "0\n");
  const auto figure = perftest.loopback(transfer);
  EXPECT_TRUE(figure.ok()) << figure.error().text();
}

/// What both sides were started with: their options, and the processors that they may use.
class PerftestSides : public ::testing::Test {
 protected:
  PerftestSides() {
    hcas_.add("mlx5_0");
    hcas_.configure("log " + log_);
  }
  std::string of(const RdmaTransfer& transfer) {
    const auto figure = Perftest(optionsOf(hcas_)).loopback(transfer);
    EXPECT_TRUE(figure.ok()) << (figure.ok() ? "" : figure.error().text());
    return testing::readWhole(log_);
  }
  static size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
  FakeHcas hcas_;
  std::string log_ = (hcas_.folder().path() / "log").string();
};

TEST_F(PerftestSides, ShareGpuMemoryThroughPeermemWhereItIsLoaded) {
  hcas_.configure("cuda\ndmabuf");
  hcas_.folder().write("sys/module/nvidia_peermem/refcnt", "0\n");
  RdmaTransfer transfer = transferOn("mlx5_0");
  transfer.gpu = 3;
  const std::string sides = of(transfer);
  EXPECT_EQ(count(sides, " --use_cuda=3"), 2u) << sides;
  EXPECT_EQ(count(sides, "dmabuf"), 0u) << sides;
  EXPECT_EQ(count(sides, "CUDA_DEVICE_ORDER=PCI_BUS_ID"), 2u) << sides;
}

TEST_F(PerftestSides, ShareGpuMemoryByDmaBufWithoutPeermem) {
  hcas_.configure("cuda\ndmabuf");
  RdmaTransfer transfer = transferOn("mlx5_0");
  transfer.gpu = 3;
  EXPECT_EQ(count(of(transfer), " --use_cuda=3 --use_cuda_dmabuf"), 2u);
}

TEST_F(PerftestSides, CannotShareGpuMemoryWithoutEither) {
  hcas_.configure("cuda");
  RdmaTransfer transfer = transferOn("mlx5_0");
  transfer.gpu = 3;
  const auto refused = Perftest(optionsOf(hcas_)).loopback(transfer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(contains(refused.error().message, "modprobe nvidia_peermem")) << refused.error().message;
  EXPECT_TRUE(contains(refused.error().message, "--use_cuda_dmabuf"));
}

TEST_F(PerftestSides, RunOnTheNumaNodeOfTheirHca) {
  cpu_set_t ours;
  ASSERT_EQ(sched_getaffinity(0, sizeof ours, &ours), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &ours)) --last;
  hcas_.folder().write("sys/class/infiniband/mlx5_0/device/numa_node", "1\n");
  hcas_.folder().write("sys/devices/system/node/node1/cpulist", std::to_string(last) + "\n");
  const std::string sides = of(transferOn("mlx5_0"));
  EXPECT_EQ(count(sides, " on processors " + std::to_string(last) + "\n"), 2u) << sides;
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&ours, &after)) << "the caller is where it was";
}

TEST_F(PerftestSides, RunWhereverTheyMayIfTheNodeIsNotTold) {
  hcas_.folder().write("sys/class/infiniband/mlx5_0/device/numa_node", "-1\n");
  EXPECT_EQ(count(of(transferOn("mlx5_0")), "ib_write_bw"), 2u);
}

/// The fake knows the options that we pass; so must the real one.
TEST(Perftest, PassesOnlyOptionsThatTheRealOneHas) {
  if (access("/usr/bin/ib_write_bw", X_OK) != 0) GTEST_SKIP() << "the package perftest is not installed";
  RdmaTransfer transfer = transferOn("mlx5_0");
  transfer.gidIndex = 3;
  transfer.trafficClass = 106;
  transfer.bothWays = true;
  for (const RdmaMethod method : {RdmaMethod::kWriteBandwidth, RdmaMethod::kSendLatency}) {
    transfer.method = method;
    const char* program =
        method == RdmaMethod::kWriteBandwidth ? "/usr/bin/ib_write_bw" : "/usr/bin/ib_send_lat";
    const std::string help = testing::runProcess({program, "--help"}).out;
    for (const std::string& argument : perftestArguments(transfer, 1234, "host", false)) {
      if (argument[0] != '-') continue;
      const std::string option = argument.substr(0, argument.find('='));
      EXPECT_TRUE(contains(help, option.starts_with("--") ? option : "  " + option + ","))
          << program << " " << option;
    }
  }
}

/// Without a device the real one says so in words; they reach the error.
TEST(Perftest, QuotesTheRealOne) {
  if (access("/usr/bin/ib_write_bw", X_OK) != 0) GTEST_SKIP() << "the package perftest is not installed";
  const auto version = Perftest({.engineFolder = "/usr/bin"}).version(RdmaMethod::kWriteBandwidth);
  ASSERT_TRUE(version.ok()) << version.error().text();
  const auto figure = Perftest({.engineFolder = "/usr/bin"}).loopback(transferOn("muster_none"));
  ASSERT_FALSE(figure.ok());
  EXPECT_TRUE(contains(figure.error().message, "(server on muster_none/1) ended with code 1"))
      << figure.error().text();
}

}  // namespace
}  // namespace muster
