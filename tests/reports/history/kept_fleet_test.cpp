// SPDX-License-Identifier: Apache-2.0
// A fleet.json read back: where it and its records lie, and what is not believed.
#include "reports/history/store/kept_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/system/files.h"
#include "tests/support/process.h"

namespace muster::history {
namespace {

using muster::testing::TempDir;
using ::testing::HasSubstr;

const std::string kDigest(64, 'a');

std::string fleetText(const std::string& state = "accepted", const std::string& digest = kDigest) {
  return R"({"fleet_schema":1,"acceptance":"accepted","simulated":false,"started":1,"finished":9,)"
         R"("coverage":{"from":"nodes.txt"},"plan":{"name":"p","sha256":"b","overrides":["x.y=1"]},)"
         R"("waivers_from":"w.toml","nodes":[{"node":"n1","state":")" +
         state + R"(","records":[{"path":"n1/record.json","sha256":")" + digest + R"("}]}]})";
}

class HistoryKeptFleet : public ::testing::Test {
 protected:
  std::string errorOf(const std::string& text) {
    dir_.write("fleet.json", text);
    const auto fleet = readFleetIn(dir_.path());
    return fleet.ok() ? "" : fleet.error().text();
  }
  TempDir dir_;
};

TEST_F(HistoryKeptFleet, SaysWhatItHolds) {
  dir_.write("fleet.json", fleetText());
  const auto fleet = readFleetIn(dir_.path());
  ASSERT_TRUE(fleet.ok()) << fleet.error().text();
  EXPECT_EQ(fleet->sha256, sha256Hex(fleetText()));
  EXPECT_EQ(fleet->plan, "p");
  EXPECT_EQ(fleet->overrides, std::vector<std::string>{"x.y=1"});
  EXPECT_EQ(fleet->waiversFrom, "w.toml");
  EXPECT_EQ(fleet->finished, 9);
  ASSERT_EQ(fleet->nodes.size(), 1u);
  EXPECT_EQ(fleet->nodes[0].records[0].sha256, kDigest);
  EXPECT_EQ(recordsFolderOf(dir_.path()), dir_.path());
}

/// The store would take none of these, and stop at it.
TEST_F(HistoryKeptFleet, HasNoTextLongerThanTheStoreTakes) {
  for (const char* text : {"\"name\":\"p", "\"x.y=1", "\"nodes.txt", "\"w.toml", "\"n1/record.json"}) {
    std::string whole = fleetText();
    whole.insert(whole.find(text) + std::string(text).size(), std::string(5 << 20, 'x'));
    EXPECT_THAT(errorOf(whole), HasSubstr("is too long")) << text;
  }
}

/// Anybody can put one into /tmp, with an accepted fleet in it.
TEST_F(HistoryKeptFleet, IsNotBelievedOfAnotherUserInASharedDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
  ASSERT_EQ(chmod(dir_.path().c_str(), 01777), 0);
  dir_.write("fleet.json", fleetText());
  EXPECT_TRUE(readFleetIn(dir_.path()).ok());
  ASSERT_EQ(chown((dir_.path() / "fleet.json").c_str(), 12345, 12345), 0);
  EXPECT_THAT(readFleetIn(dir_.path()).error().text(), HasSubstr("it belongs to another user"));
}

TEST_F(HistoryKeptFleet, IsFoundInARunThroughSlurm) {
  dir_.write("fleet/fleet.json", fleetText());
  dir_.write("records/nodes/n1/record.json", "{}");
  const auto fleet = readFleetIn(dir_.path());
  ASSERT_TRUE(fleet.ok()) << fleet.error().text();
  EXPECT_EQ(fleet->folder, dir_.path());
  EXPECT_EQ(recordsFolderOf(dir_.path()), dir_.path() / "records");
}

TEST_F(HistoryKeptFleet, IsRefusedWhenItIsTruncatedOrContradictsItself) {
  EXPECT_THAT(readFleetIn(dir_.path()).error().text(), HasSubstr("muster fleet RUN --expect FILE"));
  EXPECT_EQ(errorOf(fleetText()), "");
  EXPECT_THAT(errorOf(fleetText().substr(0, 100)), HasSubstr("is not a fleet record"));
  EXPECT_THAT(errorOf(fleetText("rejected")), HasSubstr("says accepted, and node n1 is rejected"));
  EXPECT_THAT(errorOf(fleetText("accepted", "../../etc")), HasSubstr("64 lower-case hexadecimal digits"));
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = fleetText();
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(errorOf(with("\"fleet_schema\":1", "\"fleet_schema\":2")),
              HasSubstr("is 2, and this Muster reads 1"));
  EXPECT_THAT(errorOf(with("\"node\":\"n1\"", "\"node\":\"../n1\"")), HasSubstr("is not a node name"));
  EXPECT_THAT(errorOf(with("\"finished\":9,", "")), HasSubstr("finished"));
  EXPECT_THAT(errorOf(with("\"nodes\":[{", "\"left\":[{")), HasSubstr("nodes"));
  std::string twice = fleetText();
  const size_t node = twice.find("{\"node\"");
  twice.insert(node, twice.substr(node, twice.size() - 2 - node) + ",");
  EXPECT_THAT(errorOf(twice), HasSubstr("names node n1 twice"));
  std::string none = fleetText();
  none.replace(none.find("\"nodes\":["), std::string::npos, "\"nodes\":[]}");
  EXPECT_THAT(errorOf(none), HasSubstr("names no node"));
}

}  // namespace
}  // namespace muster::history
