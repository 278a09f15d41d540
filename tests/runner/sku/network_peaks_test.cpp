// SPDX-License-Identifier: Apache-2.0
// What the network must carry: the profile's reference design, what a plan states, or nothing at all.
#include "runner/sku/network_peaks.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Peaks = std::map<std::string, double>;

const Peaks kReference = {
    {"rail_bandwidth", 50e9}, {"network_bandwidth", 400e9}, {"memory_bandwidth", 3.35e12}};

TEST(NetworkPeaks, AreThoseOfTheReferenceDesign) {
  Peaks peaks = kReference;
  addNetworkPeaks(0, 0, 8, 1, peaks);
  EXPECT_EQ(peaks.at("network_bandwidth.all_reduce"), 400e9);
  EXPECT_EQ(peaks.at("network_bandwidth.alltoall"), 50e9);
  EXPECT_EQ(peaks.at("network_bandwidth.device"), 50e9);
  EXPECT_EQ(peaks.at("rails"), 8);
  EXPECT_EQ(peaks.at("memory_bandwidth"), 3.35e12);
}

/// In an alltoall only what leaves the node passes its NICs: of two nodes about half.
TEST(NetworkPeaks, CountWhatStaysInTheNode) {
  for (const auto& [nodes, factor] : {std::pair{2, 15.0 / 8}, {4, 31.0 / 24}, {1000, 7999.0 / 7992}}) {
    Peaks peaks = kReference;
    addNetworkPeaks(0, 0, 8, nodes, peaks);
    EXPECT_DOUBLE_EQ(peaks.at("network_bandwidth.alltoall"), 50e9 * factor);
    EXPECT_EQ(peaks.at("network_bandwidth.sendrecv"), 50e9);
    EXPECT_EQ(peaks.at("network_bandwidth.all_reduce"), 400e9);
  }
}

TEST(NetworkPeaks, AreAsThePlanStatesThemInOneLine) {
  Peaks slower = kReference, fewer = kReference, other;
  addNetworkPeaks(0, 25e9, 8, 1, slower);
  EXPECT_EQ(slower.at("rail_bandwidth"), 25e9);
  EXPECT_EQ(slower.at("network_bandwidth.all_reduce"), 200e9) << "as many rails as the reference design has";
  EXPECT_EQ(slower.at("network_bandwidth.device"), 25e9);
  addNetworkPeaks(4, 0, 8, 1, fewer);
  EXPECT_EQ(fewer.at("rails"), 4);
  EXPECT_EQ(fewer.at("network_bandwidth"), 200e9);
  EXPECT_EQ(fewer.at("network_bandwidth.device"), 25e9) << "two devices share a NIC";
  addNetworkPeaks(4, 25e9, 4, 1, other);
  EXPECT_EQ(other.at("network_bandwidth.all_gather"), 100e9);
}

TEST(NetworkPeaks, AreNoneWhereNothingStatesTheNetwork) {
  for (const auto& [rails, rate] : {std::pair{0, 0.0}, {8, 0.0}, {0, 50e9}}) {
    Peaks peaks = {{"memory_bandwidth", 1e12}};
    addNetworkPeaks(rails, rate, 8, 1, peaks);
    EXPECT_EQ(peaks.size(), 1u) << rails << " rails of " << rate;
  }
}

}  // namespace
}  // namespace muster
