// SPDX-License-Identifier: Apache-2.0
// Byte counters of interfaces, from a tree of files.
#include "kernels/host/gloo/endpoint.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster::host {
namespace {

class Counters : public ::testing::Test {
 protected:
  void count(const std::string& name, const std::string& received, const std::string& sent) const {
    folder_.write(name + "/statistics/rx_bytes", received + "\n");
    folder_.write(name + "/statistics/tx_bytes", sent + "\n");
  }
  [[nodiscard]] std::map<std::string, Traffic> read() const { return readTraffic(folder_.path().string()); }
  testing::TempDir folder_;
};

TEST_F(Counters, AreReadForEachInterface) {
  count("eth0", "100", "18446744073709551615");
  count("lo", "1", "2");
  const auto traffic = read();
  ASSERT_EQ(traffic.size(), 2u);
  EXPECT_EQ(traffic.at("eth0").received, 100u);
  EXPECT_EQ(traffic.at("eth0").sent, ~0ull);
}

TEST_F(Counters, OfGarbageAreLeftOut) {
  count("eth0", "many", "2");
  EXPECT_TRUE(read().empty());
}

TEST_F(Counters, ThatRanBackwardsProveNothing) {
  count("eth0", "100", "100");
  count("eth1", "5", "5");
  const auto before = read();
  count("eth0", "40", "200");
  count("eth1", "15", "6");
  count("new0", "15", "6");
  const auto deltas = carried(before, read());
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas.at("eth1").received, 10u);
  EXPECT_EQ(deltas.at("eth1").sent, 1u);
}

TEST_F(Counters, AreNothingWhereThereIsNoSysfs) {
  EXPECT_TRUE(readTraffic("/nonexistent").empty());
}

TEST(Endpoint, IsLoopbackWhereAllAreHere) {
  const auto found = chooseEndpoint("", true);
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->interface, "lo");
  EXPECT_EQ(found->address, "127.0.0.1");
}

TEST(Endpoint, IdentifiesThisNetworkAlways) {
  EXPECT_EQ(networkIdentity(), networkIdentity());
  EXPECT_GT(networkIdentity().size(), 36u);
}

}  // namespace
}  // namespace muster::host
