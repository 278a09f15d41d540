// SPDX-License-Identifier: Apache-2.0
// perftest under supervision: a program that behaves like it, in good and in bad ways.
#include "kernels/host/rdma/perftest.h"

#include <gtest/gtest.h>

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

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Perftest, MeasuresAPortAgainstItself) {
  FakeHcas hcas;
  hcas.add("mlx5_0", "ok", 391.5, 1.75);
  const Perftest perftest(hcas.programs(), {});
  const auto bandwidth = perftest.loopback(transferOn("mlx5_0"));
  ASSERT_TRUE(bandwidth.ok()) << bandwidth.error().text();
  EXPECT_DOUBLE_EQ(bandwidth->bandwidth, 391.5e9 / 8);
  const auto latency = perftest.loopback(transferOn("mlx5_0", RdmaMethod::kSendLatency));
  ASSERT_TRUE(latency.ok()) << latency.error().text();
  EXPECT_DOUBLE_EQ(latency->latency, 1.75e-6);
}

TEST(Perftest, TellsItsVersion) {
  FakeHcas hcas;
  const auto version = Perftest(hcas.programs(), {}).version(RdmaMethod::kWriteBandwidth);
  ASSERT_TRUE(version.ok()) << version.error().text();
  EXPECT_EQ(*version, "perftest 6.06 (" + hcas.programs() + "/ib_write_bw)");
}

TEST(Perftest, NamesThePackageWhenItIsNotInstalled) {
  const testing::TempDir empty;
  for (const auto& status : {Perftest(empty.path(), {}).version(RdmaMethod::kSendLatency)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
    EXPECT_TRUE(contains(status.error().message, "ib_send_lat")) << status.error().message;
    EXPECT_TRUE(contains(status.error().message, "apt-get install perftest"));
  }
  EXPECT_EQ(Perftest(empty.path(), {}).loopback(transferOn("mlx5_0")).error().code, ErrorCode::kNotFound);
}

TEST(Perftest, TakesPartInAPair) {
  FakeHcas hcas;
  hcas.add("mlx5_0", "ok", 200);
  const Perftest perftest(hcas.programs(), {});
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
  const auto figure = Perftest(hcas.programs(), {}).connect(transferOn("mlx5_0"), "127.0.0.1", 1);
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
  const auto figure = HostRdma({hcas.sysfs(), hcas.programs(), {}}).loopback(transfer);
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
  const auto figure = Perftest(hcas.programs(), {}).loopback(transferOn("mlx5_9"));
  ASSERT_FALSE(figure.ok());
  EXPECT_TRUE(contains(figure.error().message, "Unable to find the Infiniband/RoCE device"));
}

TEST(Perftest, EndsSoonWhenItIsCancelled) {
  FakeHcas hcas;
  hcas.add("mlx5_0", "hang");
  const double start = systemClock().now();
  const auto figure = Perftest(hcas.programs(), [&] {
                        return systemClock().now() > start + 0.2;
                      }).loopback(transferOn("mlx5_0"));
  ASSERT_FALSE(figure.ok());
  EXPECT_TRUE(contains(figure.error().message, "cancelled")) << figure.error().message;
}

TEST(Perftest, CannotUseGpuMemoryWithoutCuda) {
  FakeHcas hcas;
  hcas.add("mlx5_0");
  RdmaTransfer transfer = transferOn("mlx5_0");
  transfer.gpu = 0;
  const Perftest perftest(hcas.programs(), {});
  const auto refused = perftest.loopback(transfer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(contains(refused.error().message, "without CUDA")) << refused.error().message;
  hcas.configure("cuda");
  const auto figure = perftest.loopback(transfer);
  EXPECT_TRUE(figure.ok()) << figure.error().text();
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
    for (const std::string& argument : perftestArguments(transfer, 1234, "host")) {
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
  const auto version = Perftest("/usr/bin", {}).version(RdmaMethod::kWriteBandwidth);
  ASSERT_TRUE(version.ok()) << version.error().text();
  const auto figure = Perftest("/usr/bin", {}).loopback(transferOn("muster_none"));
  ASSERT_FALSE(figure.ok());
  EXPECT_TRUE(contains(figure.error().message, "(server on muster_none/1) ended with code 1"))
      << figure.error().text();
}

}  // namespace
}  // namespace muster
