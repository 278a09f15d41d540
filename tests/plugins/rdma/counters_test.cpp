// SPDX-License-Identifier: Apache-2.0
// rdma.counters: what ports count while they carry traffic.
#include <gmock/gmock.h>

#include "tests/plugins/rdma/rdma_run.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

const Json kShort = {{"duration", "0s"}};

class RdmaCountersTest : public RdmaRun {
 protected:
  /// Each run of the engine adds to a counter.
  void count(const std::string& file, int n) {
    hcas_.configure("count " + hcas_.portFile("mlx5_0", file) + " " + std::to_string(n));
  }
};

TEST_F(RdmaCountersTest, AHealthyPortCountsNothing) {
  hcas_.add("mlx5_0");
  hcas_.set("mlx5_0", "counters/symbol_error", "17\n");
  ASSERT_EQ(onHost("counters", kShort).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "counters");
  EXPECT_EQ(of("symbol_errors", "mlx5_0/1"), 0) << "what was there before does not count";
  EXPECT_EQ(of("link_downed", "mlx5_0/1"), 0);
}

TEST_F(RdmaCountersTest, TellsWhatGrewUnderTraffic) {
  hcas_.add("mlx5_0");
  hcas_.add("mlx5_1");
  count("counters/link_downed", 1);
  count("hw_counters/packet_seq_err", 30);
  count("counters/port_xmit_data", 1000);
  ASSERT_EQ(onHost("counters", kShort).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(of("link_downed", "mlx5_0/1"), 2) << "once for the run on each port";
  EXPECT_EQ(of("retransmits", "mlx5_0/1"), 60);
  EXPECT_EQ(of("sent_bytes", "mlx5_0/1"), 8000);
  EXPECT_EQ(of("link_downed", "mlx5_1/1"), 0);
}

TEST_F(RdmaCountersTest, ALinkThatWentDownFailsInEveryPlan) {
  const TestSpec* test = plugin_.spec().test("counters");
  for (const char* metric : {"link_downed", "symbol_errors", "receive_errors", "link_error_recoveries"}) {
    ASSERT_EQ(test->metric(metric)->standing.size(), 1u) << metric;
    EXPECT_FALSE(test->metric(metric)->standing[0].remedy.empty()) << metric;
  }
}

TEST_F(RdmaCountersTest, WatchesWithoutTrafficToo) {
  hcas_.add("mlx5_0", "crash");
  EXPECT_EQ(onHost("counters", {{"duration", "10ms"}, {"traffic", false}}).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(of("link_downed", "mlx5_0/1"), 0);
}

TEST_F(RdmaCountersTest, ReportsTheCountersWhenTheTrafficFails) {
  hcas_.add("mlx5_0", "fail");
  count("counters/link_downed", 1);
  EXPECT_EQ(onHost("counters", kShort).ran, MUSTER_ERROR);
  EXPECT_THAT(host_.error, HasSubstr("Failed status 12"));
  EXPECT_EQ(of("link_downed", "mlx5_0/1"), 1) << "and here is why";
}

TEST_F(RdmaCountersTest, SaysWhichCountersADriverDoesNotHave) {
  hcas_.add("mlx5_0");
  std::filesystem::remove(hcas_.portFile("mlx5_0", "counters/symbol_error"));
  ASSERT_EQ(onHost("counters", kShort).ran, MUSTER_OK) << host_.error;
  EXPECT_TRUE(host_.told("symbol_errors").empty());
  EXPECT_THAT(host_.told("missing_counters").at(0).text, HasSubstr("symbol_errors"));
}

TEST_F(RdmaCountersTest, IsAnErrorWhereAPortHasNoCounterAtAll) {
  hcas_.add("mlx5_0");
  for (const char* folder : {"counters", "hw_counters"})
    std::filesystem::remove_all(hcas_.portFile("mlx5_0", folder));
  EXPECT_EQ(onHost("counters", kShort).ran, MUSTER_ERROR);
  EXPECT_THAT(host_.error, HasSubstr("mlx5_0/1: has no counter"));
}

TEST_F(RdmaCountersTest, IsAnErrorWhereACounterStandsAtItsMaximum) {
  hcas_.add("mlx5_0");
  hcas_.set("mlx5_0", "counters/symbol_error", "65535\n");
  EXPECT_EQ(onHost("counters", kShort).ran, MUSTER_ERROR);
  EXPECT_THAT(host_.error, HasSubstr("is at its maximum 65535"));
  EXPECT_EQ(of("link_downed", "mlx5_0/1"), 0) << "the other counters are told all the same";
}

TEST_F(RdmaCountersTest, FollowsTheWrapOfOldByteCounters) {
  hcas_.add("mlx5_0");
  hcas_.set("mlx5_0", "counters/port_rcv_data", "4294967290\n");
  // The fake adds beyond 32 bits, which old hardware cannot: it is set back by hand while the engine runs.
  hcas_.configure("count " + hcas_.portFile("mlx5_0", "counters/port_rcv_data") + " -4294967280");
  ASSERT_EQ(onHost("counters", kShort).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(of("received_bytes", "mlx5_0/1"), (6 + 10) * 4);
}

TEST_F(RdmaCountersTest, IsUnsupportedWithoutAnyHca) {
  EXPECT_EQ(onHost("counters", kShort).ran, MUSTER_UNSUPPORTED);
}

TEST_F(RdmaCountersTest, FindsASimulatedLinkThatWentDownAndCameBack) {
  const std::string flap = "[[rdma.fault]]\nkind = \"link_down\"\nhca = 1\nfrom = \"5s\"\nuntil = \"6s\"\n";
  ASSERT_EQ(onSim("counters", flap, {{"duration", "10s"}, {"traffic", false}}).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(of("link_downed", "mlx5_1/1"), 1);
  EXPECT_EQ(of("link_downed", "mlx5_0/1"), 0);
}

}  // namespace
}  // namespace muster::testing
