// SPDX-License-Identifier: Apache-2.0
// Records made to keep the reader busy: what one of a few megabytes costs is seconds, not minutes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "reports/fleet/assess/deferred.h"
#include "reports/fleet/assess/fact_drift.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"
#include "tests/support/cpu_time.h"

namespace muster {
namespace {

using testing::FleetFolder;
using testing::nodeRecord;
using testing::settle;

/// Each of these took 20 s or more.
class Cost : public testing::CpuTimeTest {
 protected:
  Cost() : CpuTimeTest(10) {}
};

TEST_F(Cost, OfAnInventoryWithALongNameOverALongList) {
  FleetFolder folder;
  Record record = nodeRecord("n0");
  record.inventory["host"][std::string(1'000'000, 'k')] = std::vector<int>(1'000'000, 0);
  folder.add(record);
  folder.assess({"n0"});
  const auto& records = folder.records();
  ASSERT_EQ(records.nodes.size(), 1u);
  EXPECT_LE(records.nodes[0].facts.size(), 1001u);
  for (const auto& fact : records.nodes[0].facts) EXPECT_LE(records.names->texts[fact.name].size(), 200u);
}

/// `count` texts of 16 letters and signs that all have one std::hash: libstdc++'s is MurmurHash64A with a
/// fixed seed (libstdc++-v3/libsupc++/hash_bytes.cc), each step of which can be undone. The first half of a
/// text is counted up; the second is what leads to the same end.
std::vector<std::string> textsOfOneHash(size_t count) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995u;
  uint64_t inverse = kMul;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kMul * inverse;
  const auto shiftMix = [](uint64_t value) { return value ^ (value >> 47); };
  const uint64_t begin = 0xc70f6907u ^ (16 * kMul);
  const uint64_t end = 0x0123456789abcdefu;
  const auto isPlain = [](uint64_t word) {
    for (; word != 0; word >>= 8)
      if (const auto c = word & 255; c <= ' ' || c > '~' || c == '"' || c == '\\') return false;
    return true;
  };
  std::vector<std::string> texts;
  for (uint64_t n = 0; texts.size() < count; ++n) {
    uint64_t first = 0;
    for (size_t i = 0; i < 8; ++i) first = first << 8 | ('a' + ((n >> (4 * i)) & 15));
    const uint64_t half = (begin ^ (shiftMix(first * kMul) * kMul)) * kMul;
    const uint64_t second = shiftMix((half ^ end) * inverse) * inverse;
    if (!isPlain(second) || second >> 56 == 0) continue;
    std::string text(16, ' ');
    std::memcpy(text.data(), &first, 8);
    std::memcpy(text.data() + 8, &second, 8);
    texts.push_back(text);
  }
  return texts;
}

/// Reads a record with `count` more errors, one for each of `rows`.
void readErrors(FleetFolder& folder, const std::string& detail, const Json& rows, size_t count) {
  Json record = Json::parse(recordText(nodeRecord("n0")));
  Json& stage = record["stages"][1];
  stage["verdicts"].push_back({{"outcome", "error"}, {"case", "x"}, {"detail", detail}, {"rows", rows}});
  stage["outcome"] = "error";
  Json& accounting = record["accounting"];
  accounting["expected"] = accounting["expected"].get<size_t>() + count;
  accounting["counts"]["error"] = accounting["counts"]["error"].get<size_t>() + count;
  record["acceptance"] = "incomplete";
  record["exit_code"] = 3;
  record["reasons"] = {"x"};
  folder.write("n0/record.json", dumpJson(record));
  const fleet::Fleet fleet = folder.assess({"n0"});
  ASSERT_TRUE(fleet.quarantined.empty()) << fleet.quarantined[0].reason;
}

TEST_F(Cost, OfNamesThatHaveOneHash) {
  constexpr size_t kNames = 30'000;
  FleetFolder folder;
  const std::vector<std::string> names = textsOfOneHash(kNames);
  EXPECT_EQ(std::hash<std::string>()(names.front()), std::hash<std::string>()(names.back()));
  readErrors(folder, "", {{"metric", names}}, kNames);
  EXPECT_GE(folder.records().names->texts.size(), kNames);
}

TEST_F(Cost, OfALongTextThatManyVerdictsShare) {
  constexpr size_t kRows = 80'000;
  FleetFolder folder;
  readErrors(folder, std::string(7'990, ' '), {{"rank", std::vector<int>(kRows, 0)}}, kRows);
  EXPECT_EQ(folder.records().nodes.size(), 1u);
}

TEST_F(Cost, OfWaiversThatFindNoStage) {
  FleetFolder folder;
  Record record = nodeRecord("n0");
  StageRecord other = record.stages[0];
  other.measurements.clear();
  other.verdicts.clear();
  other.evidence["expectations"] = Json::array();
  for (int i = 0; i < 990; ++i) {
    other.name = fmt::format("muster:{:06}{}", i, std::string(115, 'a'));
    record.stages.push_back(other);
    WaiverRecord& waiver = record.waivers.emplace_back();
    waiver.stage = fmt::format("w{:06}{}", i, std::string(121, 'b'));
    waiver.metric = "x";
    waiver.node = "n0";
    waiver.reason = "known";
    waiver.approver = "someone";
    waiver.expires = "2999-12-31";
    waiver.at = "waivers.toml:1:1";
    waiver.state = WaiverState::kUndecided;
  }
  record.waiverFile.path = "waivers.toml";
  record.waiverFile.sha256 = std::string(64, '0');
  settle(record);
  folder.add(record);
  const fleet::Fleet fleet = folder.assess({"n0"});
  ASSERT_TRUE(fleet.quarantined.empty()) << fleet.quarantined[0].reason;
  EXPECT_EQ(fleet.waivers.size(), 990u);
}

/// Nodes with so many devices, of each of which six figures are fleet-relative. n7 has slow ones.
struct RelativeFleet {
  fleet::FleetRecords records;
  fleet::FleetNodes nodes;

  RelativeFleet(size_t count, int devices) {
    const uint32_t stage = records.names->text("gemm");
    for (size_t n = 0; n < count; ++n) add(n, stage, devices);
  }

 private:
  void add(size_t n, uint32_t stage, int devices) {
    fleet::NodeSummary& record = records.nodes.emplace_back();
    record.stages.emplace_back().name = stage;
    for (int d = 0; d < devices; ++d)
      for (int k = 0; k < 6; ++k) {
        fleet::DeferredKey key;
        key.stage = "gemm";
        key.metric = "compute.figure";
        key.question = fmt::format("compute.figure{}", k);
        key.direction = Direction::kHigher;
        key.expectation.kind = CheckKind::kWithin;
        key.expectation.peers = PeerGroup::kFleet;
        key.expectation.tolerance = 0.1;
        key.expectation.unit = "FLOP/s";
        const uint32_t number = records.names->deferred.number(key.question, [&] { return key; });
        fleet::DeferredSummary& verdict = record.deferred.emplace_back();
        verdict.key = number;
        verdict.device = fmt::format("gpu{}", d);
        verdict.observed = n == 7 ? 5e14 : 7e14 + 1e9 * static_cast<double>(n);
      }
    fleet::FleetNode& node = nodes.emplace_back();
    node.name = fmt::format("n{}", n);
    node.state = fleet::NodeState::kAccepted;
    node.records = {n};
  }
};

TEST_F(Cost, OfAFleetThatIsJudgedBesideItself) {
  constexpr size_t kNodes = 12'000;
  RelativeFleet fleet(kNodes, 8);
  fleet::FleetWaivers waivers;
  const fleet::DeferredVerdicts verdicts = judgeDeferred(fleet.records, waivers, fleet.nodes);
  EXPECT_EQ(verdicts.judged, kNodes * 8 * 6);
  EXPECT_EQ(verdicts.misses.size(), 8u * 6);
  EXPECT_EQ(fleet.nodes[7].state, fleet::NodeState::kRejected);
}

/// Each record has facts and devices that no other one has.
TEST_F(Cost, OfFactsThatOneDeviceOfManyHas) {
  constexpr size_t kNodes = 30, kDevices = 1'024, kFacts = 1'000;
  fleet::FleetRecords records;
  fleet::FleetNodes nodes;
  for (size_t n = 0; n < kNodes; ++n) {
    fleet::NodeSummary& record = records.nodes.emplace_back();
    record.devices.resize(kDevices);
    for (size_t d = 0; d < kDevices; ++d) record.devices[d].id = fmt::format("gpu{}", d);
    for (size_t f = 0; f < kFacts; ++f)
      record.facts.push_back({static_cast<int16_t>(f % 2 == 0 ? 0 : -1),
                              records.names->text(fmt::format("n{}fact{}", n, f)), records.names->text("x")});
    fleet::FleetNode& node = nodes.emplace_back();
    node.name = fmt::format("n{}", n);
    node.records = {n};
  }
  const std::vector<fleet::FactDrift> found = findFactDrift(records, nodes);
  ASSERT_EQ(found.size(), 200u);
  EXPECT_EQ(found[0].fact, "gpu0 n0fact0");
  EXPECT_EQ(found[0].majority, "(none)");
  EXPECT_EQ(found[0].total, kNodes);
  EXPECT_EQ(found[0].agree, kNodes - 1);
  EXPECT_EQ(found[0].odd.at(0).where, std::vector<std::string>{"n0 gpu0"});
}

/// Records with many waivers and as many figures that these cover.
TEST_F(Cost, OfWaiversOverWhatIsJudgedBesideOtherNodes) {
  constexpr size_t kNodes = 40, kWaivers = 500;
  RelativeFleet fleet(kNodes, 100);
  fleet::FleetWaivers waivers;
  for (size_t n = 0; n < kNodes; ++n)
    for (size_t w = 0; w < kWaivers; ++w) {
      fleet::FleetWaiver& entry = waivers.emplace_back();
      entry.number = static_cast<uint32_t>(waivers.size() - 1);
      entry.waiver.metric = "compute.figure";
      entry.waiver.node = fleet.nodes[n].name;
      fleet::WaiverCount& count = fleet.records.nodes[n].waivers.emplace_back();
      count.waiver = entry.number;
      count.concerns = true;
    }
  const fleet::DeferredVerdicts verdicts = judgeDeferred(fleet.records, waivers, fleet.nodes);
  EXPECT_EQ(verdicts.judged, kNodes * 100 * 6);
  EXPECT_EQ(fleet.nodes[7].state, fleet::NodeState::kAccepted);
  EXPECT_EQ(waivers[7 * kWaivers].count.covered, 600u);
  EXPECT_EQ(waivers[8 * kWaivers].count.covered, 0u);
}

}  // namespace
}  // namespace muster
