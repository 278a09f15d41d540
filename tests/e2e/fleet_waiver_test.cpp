// SPDX-License-Identifier: Apache-2.0
// `muster fleet --waivers`: known failures are accepted visibly; waivers that are of no use are errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/fleet_run.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string waiver(const std::string& where, const std::string& expires = "2099-12-31",
                   const std::string& metric = "compute.gemm_throughput") {
  return "[[waiver]]\nstage = \"gemm\"\nmetric = \"" + metric + "\"\n" + where +
         "\nreason = \"card on order\"\napprover = \"J. Doe\"\nexpires = \"" + expires + "\"\n";
}

const std::string kSick = "node = \"sim-node-0002\"\ndevice = \"gpu5\"";

/// Four nodes, of which gpu5 of the third computes at 82%.
class FleetWaiver : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(run_.simulate(4, slowFault("node = 2\ndevice = 5", 0.82)).exitCode, 1); }

  ProcessResult judge(const std::string& waivers, const std::vector<std::string>& more = {}) {
    const auto file = run_.write("known.toml", "schema = 1\n" + waivers);
    return run_.judge(4, std::vector<std::string>{"--waivers", file.string()} + more);
  }
  std::string stateOf(size_t i) { return run_.json()["waivers"].at(i)["state"]; }
  std::string detailOf(size_t i) { return run_.json()["waivers"].at(i)["detail"]; }
  FleetRun run_;
};

TEST_F(FleetWaiver, CoversAKnownFailureAndIsSeen) {
  EXPECT_EQ(run_.judge(4).exitCode, 1) << "without a waiver it is rejected";
  const auto result = judge(waiver(kSick));
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("Waivers (1)"));
  EXPECT_THAT(result.out, HasSubstr("approved by J. Doe"));
  EXPECT_THAT(result.out, HasSubstr("ACCEPTED WITH CONCESSIONS"));
  const Json fleet = run_.json();
  EXPECT_EQ(fleet["accounting"]["counts"]["fail"], 0);
  EXPECT_GE(fleet["accounting"]["counts"]["waived"], 1);
  EXPECT_EQ(fleet["waivers"][0]["state"], "applied");
  EXPECT_EQ(fleet["waivers"][0]["nodes"], Json({"sim-node-0002"}));
  EXPECT_EQ(fleet["waivers_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(fleet["nodes"][2]["state"], "accepted");
  EXPECT_EQ(fleet["nodes"][2]["deviations"][0]["outcome"], "waived");
  const std::string html = readWhole(run_.path() / "out/fleet.html");
  for (const char* part : {"card on order", "J. Doe", "known.toml", "applied", "ACCEPTED WITH CONCESSIONS",
                           "sim-node-0002, gpu5", "approved by J. Doe, until "})
    EXPECT_THAT(html, HasSubstr(part));
}

TEST_F(FleetWaiver, KeepsAnOutlierFromBeingRejected) {
  EXPECT_EQ(judge("", {"--reject-outliers"}).exitCode, 2) << "a file without waivers is a mistake";
  const auto result = judge(waiver(kSick), {"--reject-outliers"});
  const Json fleet = run_.json();
  // Its clock is odd, too, and no waiver says so.
  EXPECT_EQ(result.exitCode, 1) << result.out;
  EXPECT_THAT(fleet["nodes"][2]["reason"].get<std::string>(), HasSubstr("statistical outlier"));
}

TEST_F(FleetWaiver, LeavesFailuresOfOthersAsTheyAre) {
  const auto result = judge(waiver("node = \"sim-node-0001\"\ndevice = \"gpu5\""));
  EXPECT_EQ(result.exitCode, 1) << result.out;
  EXPECT_EQ(stateOf(0), "unexpected pass");
  EXPECT_THAT(result.out, HasSubstr("unexpected pass: gemm compute.gemm_throughput on sim-node-0001 gpu5"));
}

TEST_F(FleetWaiver, OfASerialFollowsThePart) {
  const Json before = (run_.judge(4), run_.json());
  const auto serial = before["nodes"][2]["serials"]["gpu5"].get<std::string>();
  ASSERT_FALSE(serial.empty());
  EXPECT_EQ(judge(waiver("serial = \"" + serial + "\"")).exitCode, 0);
  EXPECT_EQ(stateOf(0), "applied");
}

TEST_F(FleetWaiver, ThatNoNodeMatchesIsAnErrorOfTheFleet) {
  const auto result =
      judge(waiver(kSick) + waiver("serial = \"nowhere\"") + waiver("node = \"sim-node-9999\"") +
            waiver("node = \"sim-node-0000\"\ndevice = \"gpu9\"") +
            waiver("node = \"sim-node-0001\"", "2099-12-31", "compute.no_such"));
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("4 waivers match nothing in the fleet"));
  EXPECT_THAT(detailOf(1), HasSubstr("no device of the fleet has serial nowhere"));
  EXPECT_THAT(detailOf(2), HasSubstr("node sim-node-9999 is not expected"));
  EXPECT_THAT(detailOf(3), HasSubstr("no such device: gpu9"));
  EXPECT_THAT(detailOf(4), HasSubstr("did not check compute.no_such there"));
  const Json fleet = run_.json();
  EXPECT_EQ(fleet["accounting"]["counts"]["error"], 4) << "and the accounting still balances";
  EXPECT_EQ(fleet["coverage"]["states"]["accepted"], 4);
}

TEST_F(FleetWaiver, OfAMissingNodeIsUndecided) {
  std::filesystem::remove_all(run_.path() / "run/sim-node-0001");
  const auto result = judge(waiver(kSick) + waiver("node = \"sim-node-0001\""));
  EXPECT_EQ(result.exitCode, 3);
  EXPECT_EQ(stateOf(1), "undecided");
  EXPECT_THAT(detailOf(1), HasSubstr("node sim-node-0001 has no record"));
}

TEST_F(FleetWaiver, ThatIsExpiredOrDamagedStopsTheReport) {
  const auto expired = judge(waiver(kSick, "2026-01-01"));
  EXPECT_EQ(expired.exitCode, 2);
  EXPECT_THAT(expired.err, HasSubstr("known.toml:9:1: this waiver expired"));
  EXPECT_FALSE(std::filesystem::exists(run_.path() / "out/fleet.json"));
  EXPECT_EQ(run_.judge(4, {"--waivers", "/no/such.toml"}).exitCode, 2);
}

TEST_F(FleetWaiver, UnderWhichNodesRanIsListedToo) {
  std::filesystem::remove_all(run_.path() / "run");
  const auto file = run_.write("own.toml", "schema = 1\n" + waiver(kSick) + waiver("serial = \"nowhere\""));
  const auto ran = run_.simulate(4, slowFault("node = 2\ndevice = 5", 0.82), {"--waivers", file.string()});
  ASSERT_EQ(ran.exitCode, 0) << ran.out << ran.err;
  const auto result = run_.judge(4);
  EXPECT_EQ(result.exitCode, 3) << "no node has the other part, and each thought it was elsewhere: "
                                << result.out;
  EXPECT_EQ(stateOf(0), "unmatched");
  EXPECT_EQ(stateOf(1), "applied");
  EXPECT_EQ(run_.json()["waivers"][1]["by"], "nodes");
}

}  // namespace
}  // namespace muster::testing
