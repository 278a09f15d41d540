// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of a made-up machine.
#include "kernels/host/rdma/host_rdma.h"

#include <gtest/gtest.h>

#include "tests/support/fake_hcas.h"

namespace muster {
namespace {

using testing::FakeHcas;

TEST(HostRdma, ReadsPortsAndCountersFromTheTreeItIsGiven) {
  FakeHcas hcas;
  hcas.add("mlx5_0");
  hcas.add("mlx5_1");
  hcas.set("mlx5_1", "counters/symbol_error", "12\n");
  hcas.set("mlx5_1", "counters/port_xmit_data", "1000\n");
  HostRdma rdma({hcas.sysfs(), hcas.programs(), {}});
  const auto ports = rdma.ports();
  ASSERT_TRUE(ports.ok());
  ASSERT_EQ(ports->size(), 2u);
  EXPECT_EQ((*ports)[1].name(), "mlx5_1/1");
  EXPECT_TRUE((*ports)[1].active());
  const auto counters = rdma.counters((*ports)[1]);
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->values.at("symbol_errors"), 12u);
  EXPECT_EQ(counters->values.at("sent_bytes"), 4000u) << "sysfs counts words of four bytes";
  EXPECT_TRUE(counters->unreadable.empty());
}

TEST(HostRdma, HasNoPortsWithoutDevices) {
  FakeHcas hcas;
  const auto ports = HostRdma({hcas.sysfs(), hcas.programs(), {}}).ports();
  ASSERT_TRUE(ports.ok());
  EXPECT_TRUE(ports->empty());
}

TEST(HostRdma, RefusesADeviceWhoseNameIsAnOption) {
  FakeHcas hcas;
  hcas.add("--help");
  const auto ports = HostRdma({hcas.sysfs(), hcas.programs(), {}}).ports();
  ASSERT_FALSE(ports.ok());
  EXPECT_NE(ports.error().text().find("--help"), std::string::npos);
  RdmaTransfer transfer;
  transfer.device = "--help";
  EXPECT_FALSE(HostRdma({hcas.sysfs(), hcas.programs(), {}}).loopback(transfer).ok());
}

/// The other side's place, as a plugin's store would tell it.
class FixedMeeting : public RdmaMeeting {
 public:
  Status announce(int) override { return Error{ErrorCode::kIo, "lost node 0", ""}; }
  Result<std::pair<std::string, int>> await(double) override {
    return Error{ErrorCode::kTimeout, "nobody announced", ""};
  }
};

TEST(HostRdma, NamesPortAndNodeWhenAPairDoesNotMeet) {
  FakeHcas hcas;
  hcas.add("mlx5_0");
  RdmaTransfer transfer;
  transfer.device = "mlx5_0";
  FixedMeeting meeting;
  HostRdma rdma({hcas.sysfs(), hcas.programs(), {}});
  const auto asClient = rdma.pair(transfer, {3, true}, meeting);
  ASSERT_FALSE(asClient.ok());
  EXPECT_EQ(asClient.error().message, "mlx5_0/1 with node 3: nobody announced");
  const auto asServer = rdma.pair(transfer, {4, false}, meeting);
  ASSERT_FALSE(asServer.ok());
  EXPECT_EQ(asServer.error().message, "mlx5_0/1 with node 4: lost node 0");
  EXPECT_TRUE(testing::processesWith(hcas.programs()).empty());
}

}  // namespace
}  // namespace muster
