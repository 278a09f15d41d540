// SPDX-License-Identifier: Apache-2.0
// Counters of RDMA ports: what is there, what cannot be read, what is at its maximum.
#include "kernels/host/inventory/rdma_counters.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

constexpr const char* kPort = "sys/class/infiniband/mlx5_0/ports/1/";

RdmaCounters read(const TempDir& dir) {
  return readRdmaCounters(Root(dir.path()), "mlx5_0", 1);
}

TEST(RdmaCounters, SumUpTheFilesOfOneMatter) {
  const TempDir dir;
  dir.write(std::string(kPort) + "counters/link_downed", "3\n");
  dir.write(std::string(kPort) + "hw_counters/packet_seq_err", "5\n");
  dir.write(std::string(kPort) + "hw_counters/local_ack_timeout_err", "7\n");
  dir.write(std::string(kPort) + "counters/port_rcv_data", "18446744073709551\n");
  const RdmaCounters counters = read(dir);
  EXPECT_EQ(counters.values.at("link_downed"), 3u);
  EXPECT_EQ(counters.values.at("retransmits"), 12u);
  EXPECT_EQ(counters.values.at("received_bytes"), 73786976294838204u);
  EXPECT_EQ(counters.values.count("symbol_errors"), 0u) << "a counter that is not there is not zero";
  EXPECT_TRUE(counters.unreadable.empty());
}

TEST(RdmaCounters, AreUnreadableWhereTheyHoldNoCount) {
  for (const char* text : {"", "-1", "N/A (no PMA)", "12 34", "99999999999999999999999"}) {
    const TempDir dir;
    dir.write(std::string(kPort) + "counters/link_downed", text);
    const RdmaCounters counters = read(dir);
    EXPECT_TRUE(counters.values.empty()) << text;
    ASSERT_EQ(counters.unreadable.size(), 1u) << text;
    EXPECT_EQ(counters.unreadable[0].device, "mlx5_0/1");
  }
}

TEST(RdmaCounters, AreUnreadableOnceTheyStandAtTheirMaximum) {
  const TempDir dir;
  dir.write(std::string(kPort) + "counters/symbol_error", "65535\n");
  dir.write(std::string(kPort) + "counters/link_downed", "254\n");
  const RdmaCounters counters = read(dir);
  EXPECT_EQ(counters.values.count("symbol_errors"), 0u);
  EXPECT_EQ(counters.values.at("link_downed"), 254u);
  ASSERT_EQ(counters.unreadable.size(), 1u);
  EXPECT_NE(counters.unreadable[0].reason.find("maximum 65535"), std::string::npos)
      << counters.unreadable[0].reason;
}

TEST(RdmaGrowth, IsTheDifference) {
  EXPECT_EQ(rdmaGrowth("link_downed", 3, 3), 0u);
  EXPECT_EQ(rdmaGrowth("link_downed", 3, 5), 2u);
}

TEST(RdmaGrowth, CountsFromZeroAfterAReset) {
  EXPECT_EQ(rdmaGrowth("link_downed", 200, 1), 1u);
  EXPECT_EQ(rdmaGrowth("sent_bytes", 1000, 400), 400u) << "too low to have wrapped";
  EXPECT_EQ(rdmaGrowth("sent_bytes", uint64_t{1} << 40, 400), 400u)
      << "more than 32 bits, so it cannot wrap there";
}

TEST(RdmaGrowth, FollowsTheByteCountersOfOldHardwareThroughTheirWrap) {
  const uint64_t range = (uint64_t{1} << 32) * 4;
  EXPECT_EQ(rdmaGrowth("sent_bytes", range - 400, 800), 1200u);
  EXPECT_EQ(rdmaGrowth("received_bytes", range - 4, 0), 4u);
}

}  // namespace
}  // namespace muster
