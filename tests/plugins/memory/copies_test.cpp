// SPDX-License-Identifier: Apache-2.0
// memory.host_copy and memory.peer over the C border, on simulated devices: figures, planted faults, what is
// refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Links of a device with PCIe 5.0 x16 and NVLink 4.
const char* const kLinks = R"([figures.copies]
host_to_device = "50 GB/s"
device_to_host = "52 GB/s"
host_bidirectional = "90 GB/s"
peer = "380 GB/s"
peer_bidirectional = "740 GB/s"
far = "80%"
kernel = "90%"
)";

std::string fault(const std::string& keys) {
  return "[[fault]]\n" + keys;
}

class MemoryCopies : public ::testing::Test {
 protected:
  CaseResult onSim(const std::string& test, const std::string& faults, const Json& params = Json::object(),
                   const std::string& device = "gpu0") {
    const auto path = folder_.write("scenario.toml", scenarioText(kLinks + faults));
    return plugin_.run(host_, test, params, contextFor("sim", device, path.string()));
  }
  /// The last sample of the one measurement of `metric` with these labels.
  double rate(const std::string& metric, const std::map<std::string, std::string>& labels) {
    for (const Told& told : host_.told(metric))
      if (told.labels == labels) return told.samples.back();
    ADD_FAILURE() << "nobody told " << metric;
    return 0;
  }
  double hostRate(const std::string& metric, const std::string& numa,
                  const std::string& engine = "copy_engine") {
    return rate(metric, {{"engine", engine}, {"numa", numa}});
  }
  double peerRate(const std::string& direction, const std::string& engine = "copy_engine") {
    return rate("peer_bandwidth",
                {{"peer", "gpu1"}, {"link", "nvlink"}, {"direction", direction}, {"engine", engine}});
  }
  TempDir folder_;
  PluginLibrary plugin_{"memory"};
  RecordingHost host_;
};

TEST_F(MemoryCopies, TimeEachDirectionFromNearAndFar) {
  ASSERT_EQ(onSim("host_copy", "").ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "host_copy");
  EXPECT_NEAR(hostRate("host_to_device_bandwidth", "near"), 50e9, 2e9);
  EXPECT_NEAR(hostRate("device_to_host_bandwidth", "near"), 52e9, 2e9);
  EXPECT_NEAR(hostRate("host_bidirectional_bandwidth", "near"), 90e9, 3e9);
  EXPECT_NEAR(hostRate("host_to_device_bandwidth", "far"), 40e9, 2e9);
  EXPECT_EQ(host_.value("host_copy_wrong_bytes"), 0);
  EXPECT_TRUE(host_.logs.empty());
}

TEST_F(MemoryCopies, MeasureOnlyWhatIsAskedFor) {
  ASSERT_EQ(onSim("host_copy", "", {{"numa", {"near"}}, {"engines", {"kernel"}}}).ran, MUSTER_OK)
      << host_.error;
  EXPECT_EQ(host_.told("host_to_device_bandwidth").size(), 1u);
  EXPECT_NEAR(hostRate("host_to_device_bandwidth", "near", "kernel"), 45e9, 2e9);
}

TEST_F(MemoryCopies, NameTheNumaNodeOfEachPlace) {
  ASSERT_EQ(onSim("host_copy", "", Json::object(), "gpu1").ran, MUSTER_OK) << host_.error;
  std::map<std::string, std::string> nodes;
  for (const Told& told : host_.told("host_copy_numa_node")) nodes[told.labels.at("numa")] = told.text;
  EXPECT_EQ(nodes, (std::map<std::string, std::string>{{"near", "1"}, {"far", "0"}}));
}

TEST_F(MemoryCopies, LeaveOutFarWhereAllMemoryIsNear) {
  ASSERT_EQ(onSim("host_copy", "", {{"numa", {"near", "far"}}}).ran, MUSTER_OK);
  RecordingHost alone;
  const auto path = folder_.write("one.toml", scenarioText(std::string(kLinks) + "numa_nodes = 1\n"));
  ASSERT_EQ(plugin_.run(alone, "host_copy", Json::object(), contextFor("sim", "gpu0", path.string())).ran,
            MUSTER_OK);
  ASSERT_EQ(alone.told("host_to_device_bandwidth").size(), 1u);
  EXPECT_EQ(alone.told("host_to_device_bandwidth")[0].labels.at("numa"), "near");
  EXPECT_EQ(
      plugin_.run(alone, "host_copy", {{"numa", {"far"}}}, contextFor("sim", "gpu0", path.string())).ran,
      MUSTER_UNSUPPORTED);
}

TEST_F(MemoryCopies, ShowALinkThatRunsWithHalfOfItsLanes) {
  ASSERT_EQ(
      onSim("host_copy", fault("kind = \"slow\"\ndevice = 0\nfactor = 0.5\nops = [\"host_copy\"]\n")).ran,
      MUSTER_OK);
  EXPECT_NEAR(hostRate("host_to_device_bandwidth", "near"), 25e9, 1e9);
  ASSERT_EQ(onSim("peer", fault("kind = \"slow\"\ndevice = 0\nfactor = 0.5\nops = [\"host_copy\"]\n")).ran,
            MUSTER_OK);
  EXPECT_NEAR(peerRate("unidirectional"), 380e9, 15e9);
}

TEST_F(MemoryCopies, FindBytesThatChangedOnTheWay) {
  ASSERT_EQ(onSim("host_copy", corruption("host_copy", 1, 4096, 9)).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(host_.value("host_copy_wrong_bytes"), 8) << "each sample to the device is checked";
  EXPECT_THAT(host_.logs.at(0),
              HasSubstr("pinned memory of NUMA node 0 to gpu0 by copy_engine: 1 bytes differ after a "
                        "copy, the first at byte offset 0x1000"));
}

TEST_F(MemoryCopies, FillARowOfThePeerMatrix) {
  ASSERT_EQ(onSim("peer", "", {{"engines", {"copy_engine", "kernel"}}}).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "peer");
  EXPECT_NEAR(peerRate("unidirectional"), 380e9, 15e9);
  EXPECT_NEAR(peerRate("bidirectional"), 740e9, 30e9);
  EXPECT_NEAR(peerRate("unidirectional", "kernel"), 342e9, 15e9);
  EXPECT_EQ(host_.value("peer_access"), 1);
  EXPECT_EQ(host_.value("peer_wrong_bytes"), 0);
}

/// Two bridged pairs: NVLink within each, PCIe between them, and slower PCIe between the CPUs.
TEST_F(MemoryCopies, NameTheLinkToEachPeer) {
  std::string text = scenarioText(std::string(kLinks) + "pcie_peer = \"40 GB/s\"\n" +
                                  "pcie_peer_bidirectional = \"70 GB/s\"\nbridged = 2\n");
  text.replace(text.find("count = 2"), 9, "count = 8");
  const auto path = folder_.write("bridged.toml", text);
  Json context = contextFor("sim", "gpu0", path.string());
  context["devices"] = {"gpu0", "gpu1", "gpu2", "gpu4"};
  ASSERT_EQ(plugin_.run(host_, "peer", Json::object(), context).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "peer");
  const auto rateTo = [&](const char* peer, const char* link, const char* direction = "unidirectional") {
    return rate("peer_bandwidth",
                {{"peer", peer}, {"link", link}, {"direction", direction}, {"engine", "copy_engine"}});
  };
  EXPECT_NEAR(rateTo("gpu1", "nvlink"), 380e9, 15e9);
  EXPECT_NEAR(rateTo("gpu2", "pcie_host"), 40e9, 2e9);
  EXPECT_NEAR(rateTo("gpu2", "pcie_host", "bidirectional"), 70e9, 3e9);
  EXPECT_NEAR(rateTo("gpu4", "pcie_system"), 32e9, 2e9);
  EXPECT_EQ(host_.value("nvlink_peers"), 1);
}

TEST_F(MemoryCopies, ShowASlowPairToBothOfIt) {
  const std::string slow = fault("kind = \"slow_link\"\ndevice = 0\npeer_device = 1\nfactor = 0.25\n");
  ASSERT_EQ(onSim("peer", slow).ran, MUSTER_OK) << host_.error;
  EXPECT_NEAR(peerRate("unidirectional"), 95e9, 5e9);
  RecordingHost other;
  const auto path = folder_.write("scenario.toml", scenarioText(kLinks + slow));
  ASSERT_EQ(plugin_.run(other, "peer", Json::object(), contextFor("sim", "gpu1", path.string())).ran,
            MUSTER_OK);
  EXPECT_NEAR(other.told("peer_bandwidth").at(0).samples.back(), 95e9, 5e9);
  EXPECT_EQ(other.told("peer_bandwidth").at(0).labels.at("peer"), "gpu0");
}

TEST_F(MemoryCopies, NameThePairWhoseBytesChanged) {
  ASSERT_EQ(onSim("peer", corruption("peer_copy", 1, 64, 3)).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(host_.value("peer_wrong_bytes"), 3) << "each sample is checked";
  EXPECT_EQ(host_.told("peer_wrong_bytes").at(0).labels.at("peer"), "gpu1");
  EXPECT_THAT(host_.logs, ElementsAre(HasSubstr("gpu0 to gpu1 by copy_engine: 1 bytes differ"),
                                      HasSubstr("gpu1 to gpu0 by copy_engine: 1 bytes differ")));
}

/// Copies that are wrong for a while, longer than a warm-up, and right again at the end: only checks on the
/// way can see them, in each direction.
TEST_F(MemoryCopies, FindAnySpanOfWrongBytes) {
  const auto wrongFrom = [&](const std::string& test, double begin) {
    const std::string op = test == "peer" ? "peer_copy" : "host_copy";
    const std::string span = fmt::format("from = {}\nuntil = {}\n", begin, begin + 0.35);
    RecordingHost host;
    const auto path = folder_.write("scenario.toml", scenarioText(kLinks + corruption(op, 1, 64, 3) + span));
    EXPECT_EQ(plugin_.run(host, test, Json::object(), contextFor("sim", "gpu0", path.string())).ran,
              MUSTER_OK)
        << host.error;
    EXPECT_GT(host.value(test + "_wrong_bytes"), 0) << test << " " << span;
  };
  for (int tenth = 0; tenth < 12; ++tenth) wrongFrom("host_copy", 100 + 0.1 * tenth);
  wrongFrom("peer", 100);
}

/// A peer that kills what touches it is named by the last progress of the rank that died.
TEST_F(MemoryCopies, SayWithWhomTheyBeginBeforeTheyTouchIt) {
  EXPECT_EQ(onSim("peer", fault("kind = \"missing\"\ndevice = 1\nat = 100\n")).ran, MUSTER_ERROR);
  EXPECT_THAT(host_.lastProgress, HasSubstr("gpu1"));
  // What hangs the driver's list of devices is no matter of this rank's: the runner told it who is there.
  ASSERT_EQ(onSim("peer", fault("kind = \"crash\"\ndevice = 1\nops = [\"inventory\"]\n")).ran, MUSTER_OK)
      << host_.error;
}

TEST_F(MemoryCopies, AreUnsupportedWithoutALink) {
  const auto path = folder_.write("bare.toml", scenarioText(""));
  EXPECT_EQ(plugin_.run(host_, "host_copy", Json::object(), contextFor("sim", "gpu0", path.string())).opened,
            MUSTER_OK);
  EXPECT_THAT(host_.error, HasSubstr("[figures.copies]"));
  EXPECT_EQ(plugin_.run(host_, "host_copy", Json::object(), contextFor("host", "cpu0")).ran,
            MUSTER_UNSUPPORTED);
  EXPECT_THAT(host_.error, HasSubstr("the backend host has no link between a device and its host"));
  EXPECT_EQ(plugin_.run(host_, "peer", Json::object(), contextFor("host", "cpu0")).ran, MUSTER_UNSUPPORTED);
}

TEST_F(MemoryCopies, StopSoonWhenCancelled) {
  host_.cancelAfter = 2;
  EXPECT_EQ(onSim("host_copy", "").ran, MUSTER_CANCELLED);
}

}  // namespace
}  // namespace muster::testing
