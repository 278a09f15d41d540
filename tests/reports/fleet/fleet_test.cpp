// SPDX-License-Identifier: Apache-2.0
// What stands out in a fleet, and the two files that tell it: fleet.json and fleet.html.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "reports/fleet/render/fleet_html.h"
#include "reports/fleet/render/fleet_terminal.h"
#include "reports/html/page/csp.h"
#include "runner/core/statistics.h"
#include "runner/system/files.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using fleet::Fleet;
using fleet::SuspectKind;
using testing::failedRecord;
using testing::FleetFolder;
using ::testing::HasSubstr;
using testing::joinGroup;
using testing::nodeOf;
using testing::nodeRecord;
using ::testing::Not;
using testing::settle;

/// Every figure of a node at `share` of itself, with a spread of a half percent between devices.
void vary(Record& record, unsigned seed, const std::string& device = "", double share = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1, 0.005);
  for (StageRecord& stage : record.stages)
    for (Measurement& m : stage.measurements) {
      if (m.isText() || m.unit == "count" || m.unit == "bool") continue;
      const double factor = noise(random) * (m.device == device && m.unit == "FLOP/s" ? share : 1);
      for (double& sample : m.samples) sample *= factor;
    }
}

std::vector<std::string> addNodes(FleetFolder& folder, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.push_back("n" + std::to_string(i));
    Record record = nodeRecord(names.back());
    vary(record, static_cast<unsigned>(i), i == 7 ? "gpu3" : "", 0.9);
    folder.add(record);
  }
  return names;
}

TEST(Fleet, NamesASlowDeviceBesideItsPeers) {
  FleetFolder folder;
  const auto names = addNodes(folder, 20);
  const Fleet fleet = folder.assess(names);
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted) << "it meets its limits, so it is a suspect only";
  ASSERT_EQ(fleet.suspects.size(), 1u);
  EXPECT_EQ(fleet.suspects[0].kind, SuspectKind::kDevice);
  EXPECT_EQ(fleet.suspects[0].node, "n7");
  EXPECT_EQ(fleet.suspects[0].what, "gpu3");
  EXPECT_TRUE(fleet.suspects[0].byPeers);
  EXPECT_FALSE(fleet.suspects[0].next.empty());
  EXPECT_NEAR(nodeOf(fleet, "n7").worstShare, 0.9, 0.03);
}

TEST(Fleet, TellsAMissedLimitBeforeTheDistanceToPeers) {
  FleetFolder folder;
  std::vector<std::string> names = addNodes(folder, 20);
  Record failed = failedRecord("n7", "gpu3");
  vary(failed, 7, "gpu3", 0.9);
  folder.add(failed);
  const Fleet fleet = folder.assess(names);
  ASSERT_EQ(fleet.suspects.size(), 1u);
  const auto& suspect = fleet.suspects[0];
  EXPECT_TRUE(suspect.byPeers && suspect.byBoth);
  EXPECT_THAT(suspect.evidence.front(), ::testing::StartsWith("fail: "));
  EXPECT_THAT(suspect.evidence.back(), HasSubstr("below the median"));
}

TEST(Fleet, RejectsOutliersWhenAsked) {
  FleetFolder folder;
  fleet::FleetOptions options;
  for (const std::string& name : addNodes(folder, 20)) options.expected.push_back({name, "", false});
  options.rejectOutliers = true;
  const Fleet fleet = folder.assess(options);
  EXPECT_EQ(fleet.exitCode, 1);
  EXPECT_THAT(nodeOf(fleet, "n7").reason, HasSubstr("statistical outlier"));
  ASSERT_EQ(fleet.incidents.size(), 1u);
  EXPECT_TRUE(fleet.incidents.front().blocks()) << "an outlier that is rejected blocks";
}

TEST(Fleet, DoesNotTakeAUniformlySlowFleetForHealthy) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) {
    names.push_back("n" + std::to_string(i));
    folder.add(failedRecord(names.back(), "gpu" + std::to_string(i)));
  }
  const Fleet fleet = folder.assess(names);
  EXPECT_EQ(fleet.exitCode, 1);
  ASSERT_FALSE(fleet.suspects.empty());
  EXPECT_EQ(fleet.suspects[0].kind, SuspectKind::kGroup);
  EXPECT_THAT(fleet.suspects[0].evidence[0], HasSubstr("6 of 6 nodes"));
  EXPECT_EQ(std::count_if(fleet.suspects.begin(), fleet.suspects.end(),
                          [](const auto& s) { return s.kind == SuspectKind::kDevice; }),
            0)
      << "no device is to blame for what all do";
}

TEST(Fleet, NamesARailWhereTheSamePlaceFailsOnEveryNode) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) {
    names.push_back("n" + std::to_string(i));
    folder.add(failedRecord(names.back()));
  }
  const Fleet fleet = folder.assess(names);
  EXPECT_EQ(fleet.exitCode, 1);
  ASSERT_EQ(fleet.suspects.size(), 7u);
  EXPECT_EQ(fleet.suspects[0].kind, SuspectKind::kRail);
  EXPECT_EQ(fleet.suspects[0].what, "gpu3");
  EXPECT_THAT(fleet.suspects[0].evidence[0], HasSubstr("6 of 6 nodes"));
}

TEST(Fleet, NamesASwitchWhoseNodesAreSuspect) {
  FleetFolder folder;
  fleet::FleetOptions options;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "n" + std::to_string(i);
    folder.add(i < 6 ? failedRecord(name) : nodeRecord(name));
    options.expected.push_back({name, "", false});
    options.topology[i < 8 ? "leaf1" : "leaf2"].push_back(name);
  }
  const Fleet fleet = folder.assess(options);
  ASSERT_FALSE(fleet.suspects.empty());
  EXPECT_EQ(fleet.suspects[0].kind, SuspectKind::kSwitch);
  EXPECT_EQ(fleet.suspects[0].what, "leaf1");
  EXPECT_THAT(fleet.suspects[0].evidence[0], HasSubstr("6 of its 8 nodes"));
}

TEST(Fleet, NamesConfigurationThatDrifts) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back("n" + std::to_string(i));
    Record record = nodeRecord(names.back());
    record.inventory["host"]["kernel"] = i == 2 ? "5.15.0-old" : "6.8.0";
    record.inventory["devices"][3]["facts"]["vbios"] = i == 4 ? "odd" : "96.00";
    folder.add(record);
  }
  const Fleet fleet = folder.assess(names);
  const auto drift = [&](const std::string& fact) -> const fleet::FactDrift* {
    for (const auto& d : fleet.drift)
      if (d.fact.find(fact) != std::string::npos) return &d;
    return nullptr;
  };
  ASSERT_NE(drift("kernel"), nullptr);
  EXPECT_EQ(drift("kernel")->majority, "6.8.0");
  EXPECT_EQ(drift("kernel")->odd[0].where, std::vector<std::string>{"n2"});
  ASSERT_NE(drift("vbios"), nullptr);
  EXPECT_EQ(drift("vbios")->odd[0].where, std::vector<std::string>{"n4 gpu3"});
  EXPECT_EQ(fleet.drift.size(), 2u);
}

TEST(Fleet, ShowsBytesThatDriftWithTheirUnitOrExactly) {
  const std::map<uint64_t, std::pair<std::string, std::string>> shown = {
      {1'000'000'000'000, {"1.819 TiB", "931.3 GiB"}},
      {2'000'000'000'001, {"2000000000000", "2000000000001"}}};
  for (const auto& [odd, texts] : shown) {
    FleetFolder folder;
    for (const char* name : {"n0", "n1", "n2"}) {
      Record record = nodeRecord(name);
      record.inventory["host"]["memory_bytes"] = name == std::string("n1") ? odd : 2'000'000'000'000;
      folder.add(record);
    }
    const Fleet fleet = folder.assess({"n0", "n1", "n2"});
    ASSERT_EQ(fleet.drift.size(), 1u);
    EXPECT_EQ(fleet.drift[0].majority, texts.first);
    EXPECT_EQ(fleet.drift[0].odd[0].value, texts.second);
  }
}

TEST(Fleet, NamesGpusAndHostSettingsThatDifferFromTheMajority) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back("n" + std::to_string(i));
    Record record = nodeRecord(names.back());
    record.inventory["host"]["cpu_governor"] = i == 1 ? "powersave" : "performance";
    record.inventory["topology"] = {{{"device", "gpu0"},
                                     {"bus_address", i == 2 ? "0000:3b:00.0" : "0000:18:00.0"},
                                     {"numa_node", i == 3 ? 1 : 0},
                                     {"near", {{"mlx5_0", i == 4 ? "SYS" : "PIX"}}}}};
    // Each rack has its own.
    record.inventory["devices"][0]["facts"]["fabric_clique"] = i < 3 ? "0a.1" : "0b.1";
    folder.add(record);
  }
  std::map<std::string, std::string> odd;
  for (const auto& drift : folder.assess(names).drift) odd[drift.fact] = drift.odd[0].where[0];
  EXPECT_EQ(odd, (std::map<std::string, std::string>{{"host.cpu_governor", "n1"},
                                                     {"topology[0].bus_address", "n2"},
                                                     {"topology[0].numa_node", "n3"},
                                                     {"topology[0].near.mlx5_0", "n4"}}));
}

TEST(Fleet, TakesNothingThatTheInventoryMeasuresForConfiguration) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back("n" + std::to_string(i));
    Record record = nodeRecord(names.back());
    record.inventory["devices"][0]["facts"]["clock_measured"] = i == 2 ? "2.61 GHz" : "2.6 GHz";
    record.inventory["host"]["fan_measured"] = i == 3 ? 4000 : 4100;
    folder.add(record);
  }
  for (const auto& drift : folder.assess(names).drift) ADD_FAILURE() << drift.text;
}

/// Makes the verdict fleet-relative; what it is about was measured so.
void deferOne(StageRecord& stage, Verdict& verdict, double observed) {
  verdict.outcome = Outcome::kDeferred;
  verdict.observed = observed;
  verdict.expectation->kind = CheckKind::kWithin;
  verdict.expectation->peers = PeerGroup::kFleet;
  verdict.expectation->tolerance = 0.1;
  verdict.expectation->unit = "FLOP/s";
  for (Measurement& m : stage.measurements)
    if (m.metric == verdict.metric && m.device == verdict.device && m.caseId == verdict.caseId)
      m.samples.front() = observed;
}

void keepExpectations(StageRecord& stage) {
  Json list = Json::array();
  for (const Verdict& verdict : stage.verdicts)
    if (verdict.expectation) list.push_back(toJson(*verdict.expectation));
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  stage.evidence["expectations"] = list;
}

/// One more verdict on gpu0, fleet-relative.
void defer(Record& record, double observed) {
  for (StageRecord& stage : record.stages)
    for (const Verdict& other : stage.verdicts) {
      if (other.metric != "compute.gemm_throughput" || other.device != "gpu0" || !other.expectation) continue;
      stage.verdicts.push_back(Verdict(other));
      Verdict& verdict = stage.verdicts.back();
      deferOne(stage, verdict, observed);
      verdict.expectation->where["device"] = "gpu0";
      verdict.expectation->at = "/home/" + record.node + "/plan.toml:7";  // each has a copy of the plan
      keepExpectations(stage);
      settle(record);
      return;
    }
  FAIL() << "the sample has no such verdict";
}

TEST(Fleet, JudgesWhatNodesDeferred) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back("n" + std::to_string(i));
    Record record = nodeRecord(names.back());
    defer(record, i == 3 ? 5e14 : 7e14);
    folder.add(record);
  }
  const Fleet fleet = folder.assess(names);
  EXPECT_EQ(fleet.deferredCount, 5u);
  EXPECT_EQ(fleet.accounting.of(Outcome::kDeferred), 0u);
  EXPECT_EQ(fleet.accounting.of(Outcome::kFail), 1u);
  EXPECT_EQ(fleet.exitCode, 1);
  EXPECT_EQ(nodeOf(fleet, "n3").state, fleet::NodeState::kRejected);
  ASSERT_EQ(fleet.deferred.size(), 1u);
  EXPECT_THAT(fleet.deferred[0].detail, HasSubstr("within 10% of the fleet median 700 TFLOP/s"));
}

/// Five nodes whose throughput is judged beside the others'; n3 is too slow.
std::vector<Record> deferredFleet() {
  std::vector<Record> records;
  for (int i = 0; i < 5; ++i) {
    records.push_back(nodeRecord("n" + std::to_string(i)));
    defer(records.back(), i == 3 ? 5e14 : 7e14);
  }
  return records;
}

fleet::Fleet assessAll(const std::vector<Record>& records) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (const Record& record : records) {
    names.push_back(record.node);
    folder.add(record);
  }
  return folder.assess(names);
}

/// As a run under a waiver of n3's throughput has it.
void giveWaiverOf(const std::string& node, Record& record, WaiverState state) {
  record.waiverFile.path = "waivers.toml";
  record.waiverFile.sha256 = sha256Hex("waivers");
  WaiverRecord& waiver = record.waivers.emplace_back();
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      if (verdict.outcome == Outcome::kDeferred) waiver.stage = stage.name, waiver.metric = verdict.metric;
  waiver.node = node;
  waiver.reason = "known";
  waiver.approver = "someone";
  waiver.expires = "2999-12-31";
  waiver.at = "waivers.toml:1:1";
  waiver.state = state;
}

TEST(Fleet, AWaiverInOneRecordCoversNoOtherNode) {
  for (const WaiverState state : {WaiverState::kElsewhere, WaiverState::kUndecided, WaiverState::kApplied,
                                  WaiverState::kUnexpectedPass}) {
    std::vector<Record> records = deferredFleet();
    giveWaiverOf("n3", records[0], state);
    const fleet::Fleet fleet = assessAll(records);
    if (state == WaiverState::kElsewhere) {
      EXPECT_EQ(nodeOf(fleet, "n3").state, fleet::NodeState::kRejected);
      continue;
    }
    EXPECT_NE(nodeOf(fleet, "n3").state, fleet::NodeState::kAccepted) << nameOf(state);
    EXPECT_EQ(nodeOf(fleet, "n0").state, fleet::NodeState::kQuarantined)
        << nameOf(state) << ": a record cannot state the result of a waiver for another node";
  }
  std::vector<Record> own = deferredFleet();
  giveWaiverOf("n3", own[3], WaiverState::kUndecided);
  EXPECT_EQ(nodeOf(assessAll(own), "n3").state, fleet::NodeState::kAccepted) << "its run was under it";
}

TEST(Fleet, DoesNotForgetWhatARepeatedRecordLeftOpen) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2"}) {
    Record record = nodeRecord(name);
    defer(record, 7e14);
    folder.add(record);
  }
  Record before = nodeRecord("n2");
  before.started -= 1000;
  before.finished -= 1000;
  defer(before, 5e14);
  folder.add(before, "before");
  const fleet::Fleet fleet = folder.assess({"n1", "n2"});
  EXPECT_EQ(nodeOf(fleet, "n2").state, fleet::NodeState::kIncomplete);
  EXPECT_THAT(nodeOf(fleet, "n2").reason,
              AllOf(HasSubstr("in before/record.json"), HasSubstr("two nodes differ")));
}

TEST(Fleet, ComparesNoRepeatedRecordWithOutliers) {
  FleetFolder folder;
  for (const char* path : {"n1", "again"}) folder.add(nodeRecord("n1"), path);
  fleet::FleetOptions options;
  options.expected.push_back({"n1", "", false, ""});
  EXPECT_EQ(folder.assess(options).exitCode, 0);
  options.rejectOutliers = true;
  const fleet::Fleet fleet = folder.assess(options);
  EXPECT_EQ(fleet.exitCode, 3);
  EXPECT_THAT(nodeOf(fleet, "n1").reason,
              HasSubstr("was not compared with the other nodes (--reject-outliers)"));
}

TEST(Fleet, IsNotAcceptedUnderAWaiverOfARecordThatExpiredSince) {
  std::vector<Record> records = deferredFleet();
  giveWaiverOf("n3", records[3], WaiverState::kUndecided);
  FleetFolder folder;
  fleet::FleetOptions options;
  for (const Record& record : records) {
    folder.add(record);
    options.expected.push_back({record.node, "", false, ""});
  }
  options.at = records[0].finished + 60;
  EXPECT_EQ(folder.assess(options).exitCode, 0);
  options.at = 32'503'680'000;  // in the year 3000
  const fleet::Fleet late = folder.assess(options);
  EXPECT_EQ(late.exitCode, 3);
  EXPECT_THAT(late.reasons, Contains(AllOf(HasSubstr("n3"), HasSubstr("expired on 2999-12-31"))));
}

TEST(Fleet, SetsAsideARecordWithAWaiverThatNoRunAccepts) {
  std::vector<Record> records = deferredFleet();
  giveWaiverOf("n3", records[3], WaiverState::kUndecided);
  records[3].waivers[0].expires = "2020-01-01";
  EXPECT_THAT(nodeOf(assessAll(records), "n3").reason, HasSubstr("a waiver expired on 2020-01-01"));
  records[3].waivers[0].expires = "2999-12-31";
  records[3].waivers[0].node = "";
  EXPECT_THAT(nodeOf(assessAll(records), "n3").reason, HasSubstr("a waiver names no node or serial"));
}

TEST(Fleet, TheTextOfAPlanIsNeverThatOfARecordThatCannotBeUsed) {
  FleetFolder folder;
  const Record honest = nodeRecord("n1");
  Record edited = nodeRecord("n0");
  edited.plan.text += "\n# edited";
  folder.add(edited, "a/n0");
  folder.add(honest, "b/n1");
  const Fleet fleet = folder.assess({"n0", "n1"});
  EXPECT_EQ(nodeOf(fleet, "n0").state, fleet::NodeState::kQuarantined);
  const std::string* text = folder.records().names->plans.find(honest.plan.sha256);
  ASSERT_NE(text, nullptr);
  EXPECT_EQ(*text, honest.plan.text);
}

TEST(Fleet, SetsAsideARecordThatHasAStageTwice) {
  std::vector<Record> records = deferredFleet();
  for (int i = 0; i < 2; ++i) {
    records[0].stages.push_back(records[0].stages[1]);
    records[0].stages.back().name = "muster:a";
    for (Verdict& verdict : records[0].stages.back().verdicts) verdict.stage = "muster:a";
  }
  settle(records[0]);
  EXPECT_THAT(nodeOf(assessAll(records), "n0").reason, HasSubstr("two stages have this name"));
}

/// The verdicts of one figure, fleet-relative: on the first `slow` devices far below the others.
void deferAll(Record& record, size_t slow) {
  const auto isFigure = [](const Verdict& v) {
    return v.metric == "compute.gemm_throughput" && v.expectation;
  };
  for (StageRecord& stage : record.stages) {
    std::string caseId;
    size_t at = 0;
    for (Verdict& verdict : stage.verdicts) {
      if (!isFigure(verdict) || (!caseId.empty() && verdict.caseId != caseId)) continue;
      caseId = verdict.caseId;
      deferOne(stage, verdict, at++ < slow ? 5e14 : 7e14);
    }
    if (at == 0) continue;
    keepExpectations(stage);
    break;
  }
  settle(record);
}

TEST(Fleet, BlamesTheNodeWhereMostOfItsDevicesAreBehindTheFleet) {
  for (const size_t slow : {size_t{2}, size_t{8}}) {
    FleetFolder folder;
    std::vector<std::string> names;
    for (int i = 0; i < 5; ++i) {
      names.push_back("n" + std::to_string(i));
      Record record = nodeRecord(names.back());
      deferAll(record, i == 3 ? slow : 0);
      folder.add(record);
    }
    const Fleet fleet = folder.assess(names);
    ASSERT_EQ(fleet.deferred.size(), slow);
    const bool whole = slow == 8;
    ASSERT_EQ(fleet.suspects.size(), whole ? 1u : slow);
    EXPECT_EQ(fleet.suspects[0].kind, whole ? fleet::SuspectKind::kNode : fleet::SuspectKind::kDevice);
    EXPECT_EQ(fleet.suspects[0].node, "n3");
    EXPECT_THAT(nodeOf(fleet, "n3").reason,
                HasSubstr(std::to_string(slow - 1) + " more failed beside the other nodes"));
  }
}

/// The states of nodes that deferred these figures.
std::vector<fleet::NodeState> statesOf(const std::vector<double>& observed) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (size_t i = 0; i < observed.size(); ++i) {
    names.push_back("n" + std::to_string(i));
    Record record = nodeRecord(names.back());
    defer(record, observed[i]);
    folder.add(record);
  }
  std::vector<fleet::NodeState> states;
  for (const auto& node : folder.assess(names).nodes) states.push_back(node.state);
  return states;
}

/// The first node's record says what it likes; the others are honest, and n1 is the one it wants to hit.
TEST(Fleet, OneRecordNeitherRejectsNorHidesAnotherNode) {
  using enum fleet::NodeState;
  using States = std::vector<fleet::NodeState>;
  constexpr double kHuge = 9e37, kTiny = 1, kGood = 7e14, kSlow = 5e14;
  EXPECT_EQ(statesOf({kHuge, kGood})[1], kIncomplete) << "nobody can say which of two is right";
  EXPECT_EQ(statesOf({kHuge, kGood, kGood})[1], kIncomplete);
  EXPECT_EQ(statesOf({kHuge, kGood, kGood, kGood}), (States{kAccepted, kAccepted, kAccepted, kAccepted}));
  EXPECT_EQ(statesOf({9e300, kGood, kGood, kGood}), (States{kQuarantined, kAccepted, kAccepted, kAccepted}))
      << "no measurement gives that";
  EXPECT_EQ(statesOf({kTiny, kGood, kGood, kGood})[3], kAccepted);
  EXPECT_EQ(statesOf({kSlow, kSlow, kGood})[1], kIncomplete) << "forged to be as slow";
  EXPECT_EQ(statesOf({kSlow, kSlow, kGood, kGood})[1], kIncomplete);
  EXPECT_EQ(statesOf({kHuge, kGood, kGood, kGood, kGood}),
            (States{kAccepted, kAccepted, kAccepted, kAccepted, kAccepted}));
  EXPECT_EQ(statesOf({kTiny, kSlow, kGood})[1], kIncomplete) << "a slow node is not hidden";
  EXPECT_EQ(statesOf({kTiny, kSlow, kGood})[2], kAccepted);
  EXPECT_EQ(statesOf({kTiny, kSlow, kGood, kGood, kGood})[1], kRejected);
  EXPECT_EQ(statesOf({kGood, kSlow, kGood})[1], kRejected) << "one of the good ones is honest at least";
  EXPECT_EQ(statesOf({kGood, kGood}), (States{kAccepted, kAccepted}));
  EXPECT_EQ(statesOf({kGood, kGood, kGood}), (States{kAccepted, kAccepted, kAccepted}));
}

/// Records are read by name, so the liar comes first.
TEST(Fleet, NoRecordChoosesTheDirectionOfAMetricForTheOthers) {
  using enum fleet::NodeState;
  constexpr double kGood = 7e14, kSlow = 5e14;
  for (const bool expected : {true, false}) {
    FleetFolder folder;
    std::vector<std::string> names = {"n1", "n2", "n3", "n4"};
    for (const std::string& name : names) {
      Record record = nodeRecord(name);
      defer(record, name == "n2" ? kSlow : kGood);
      folder.add(record);
    }
    Record liar = nodeRecord("a0");
    defer(liar, kGood);
    for (StageRecord& stage : liar.stages)
      for (Measurement& measurement : stage.measurements)
        if (measurement.metric == "compute.gemm_throughput") measurement.direction = Direction::kLower;
    folder.add(liar);
    if (expected) names.push_back("a0");
    const Fleet fleet = folder.assess(names);
    EXPECT_EQ(nodeOf(fleet, "n1").state, kAccepted) << nodeOf(fleet, "n1").reason;
    EXPECT_EQ(nodeOf(fleet, "n2").state, kRejected) << nodeOf(fleet, "n2").reason;
    EXPECT_EQ(nodeOf(fleet, "n4").state, kAccepted) << nodeOf(fleet, "n4").reason;
    if (expected) {
      EXPECT_NE(nodeOf(fleet, "a0").state, kAccepted);
    }
  }
}

/// Four healthy nodes, of which n4 says something untrue.
Fleet besideLiar(const std::function<void(Record&)>& lie, FleetFolder& folder) {
  for (const char* name : {"n1", "n2", "n3", "n4"}) {
    Record record = nodeRecord(name);
    if (record.node == "n4") lie(record);
    folder.add(record);
  }
  return folder.assess({"n1", "n2", "n3", "n4"});
}

Fleet besideLiar(const std::function<void(Record&)>& lie) {
  FleetFolder folder;
  return besideLiar(lie, folder);
}

void expectOthersAccepted(const Fleet& fleet) {
  for (const char* name : {"n1", "n2", "n3"})
    EXPECT_EQ(nodeOf(fleet, name).state, fleet::NodeState::kAccepted) << nodeOf(fleet, name).reason;
}

/// Makes `stage` one of three nodes in a run of 77, in which this record says that n1 failed.
void accuseN1In(StageRecord& stage, Record& record) {
  stage.scope = Scope::kCluster;
  stage.group = {{"world_size", 24}, {"first_rank", 0}, {"nodes", 3}, {"culprit", ""}};
  record.nodeCount = 77;
  Verdict verdict;
  verdict.outcome = Outcome::kFail;
  verdict.stage = stage.name;
  verdict.metric = "compute.gemm_throughput";
  verdict.labels = {{"culprit", "node n1"}, {"kind", "node"}};
  verdict.detail = "slow";
  verdict.observed = verdict.limit = verdict.margin = std::nan("");
  stage.verdicts.push_back(verdict);
  settle(record);
  record.acceptance = Acceptance::kRejected;
  record.exitCode = 1;
  record.reasons = {"1 check failed"};
}

TEST(Fleet, NoRecordMakesAStageOneOfSeveralNodes) {
  const Fleet known = besideLiar([](Record& record) { accuseN1In(record.stages.back(), record); });
  expectOthersAccepted(known);
  EXPECT_EQ(nodeOf(known, "n4").state, fleet::NodeState::kRejected) << nodeOf(known, "n4").reason;
  const Fleet invented = besideLiar([](Record& record) {
    StageRecord stage = record.stages.back();
    stage.name = "muster:links";
    stage.verdicts.clear();
    stage.measurements.clear();
    stage.evidence = {{"expectations", Json::array()}};
    accuseN1In(stage, record);
    record.stages.push_back(stage);
    settle(record);
    record.acceptance = Acceptance::kRejected;
    record.exitCode = 1;
    record.reasons = {"1 check failed"};
  });
  expectOthersAccepted(invented);
  EXPECT_EQ(nodeOf(invented, "n4").state, fleet::NodeState::kRejected) << nodeOf(invented, "n4").reason;
}

TEST(Fleet, NoRecordSaysThatAGroupLacksItsFirstNode) {
  const Fleet fleet = besideLiar([](Record& record) {
    StageRecord stage = record.stages.back();
    stage.name = "muster:links";
    stage.scope = Scope::kCluster;
    stage.group = {{"world_size", 16}, {"first_rank", 8}, {"nodes", 2}, {"culprit", ""}};
    record.nodeRank = 1;
    record.nodeCount = 2;
    record.stages.push_back(stage);
    settle(record);
  });
  expectOthersAccepted(fleet);
  EXPECT_THAT(fleet.reasons, ::testing::Not(::testing::Contains(HasSubstr("no record of its first node"))));
}

TEST(Fleet, NoRecordChoosesTheOverridesOfARun) {
  // What the others ran without overrides is not of another run because of one that has an empty one.
  const auto lie = [](Record& record) { record.overrides = {""}; };
  FleetFolder folder;
  Record copy = nodeRecord("n9");
  testing::giveParts(copy, "n1");
  folder.add(copy);
  const Fleet fleet = besideLiar(lie, folder);
  EXPECT_EQ(nodeOf(fleet, "n4").state, fleet::NodeState::kStale);
  EXPECT_NE(nodeOf(fleet, "n1").state, fleet::NodeState::kAccepted) << "n9 has its parts";
}

TEST(Fleet, NoRecordNamesThePlanForTheOthers) {
  const std::string name = nodeRecord("n1").plan.name;
  EXPECT_EQ(besideLiar([](Record& record) { record.plan.name = "burn-in of everything"; }).planName, name);
}

TEST(Fleet, AWaiverOfOneRecordThatMatchesNothingIsItsNodesError) {
  const Fleet fleet = besideLiar([](Record& record) {
    giveWaiverOf("nowhere", record, WaiverState::kElsewhere);
    record.waivers.back().stage = record.stages.back().name;
    record.waivers.back().metric = "compute.gemm_throughput";
  });
  expectOthersAccepted(fleet);
  EXPECT_EQ(fleet.waiversUnmatched, 0u);
  EXPECT_EQ(nodeOf(fleet, "n4").state, fleet::NodeState::kIncomplete);
  EXPECT_THAT(nodeOf(fleet, "n4").reason, HasSubstr("that matches nothing in the fleet"));
}

/// A figure that the first node of a group reports for all of its nodes.
void reportForAll(Record& record, Direction direction) {
  Measurement measurement;
  measurement.metric = "collective.large_message_bus_bandwidth";
  measurement.unit = "B/s";
  measurement.direction = direction;
  measurement.samples = {4e11};
  record.stages.back().measurements.push_back(measurement);
}

TEST(Fleet, WhatAFirstNodeReportsForAllIsNotContradictedByOneRecord) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) {
    names.push_back("n" + std::to_string(i));
    Record record = nodeRecord(names.back());
    record.nodeRank = i;
    record.nodeCount = 8;
    joinGroup(record.stages.back(), i, 8);
    if (i == 0) reportForAll(record, Direction::kHigher);
    if (i == 5) reportForAll(record, Direction::kLower);
    settle(record);
    folder.add(record);
  }
  const Fleet fleet = folder.assess(names);
  EXPECT_EQ(nodeOf(fleet, "n0").state, fleet::NodeState::kAccepted) << nodeOf(fleet, "n0").reason;
  EXPECT_EQ(nodeOf(fleet, "n5").state, fleet::NodeState::kIncomplete) << nodeOf(fleet, "n5").reason;
}

/// What a record may say of the throughput for itself, and not for the others.
using Lie = std::function<void(Measurement&)>;

void tell(Record& record, const Lie& lie) {
  for (StageRecord& stage : record.stages)
    for (Measurement& measurement : stage.measurements)
      if (measurement.metric == "compute.gemm_throughput") lie(measurement);
}

/// Gives a record clocks that no other one has, of a spread with one value far off.
void addClocks(StageRecord& stage, int figures) {
  constexpr std::array kShape = {100.9, 100.7, 100.5, 100.1, 99.9, 99.4, 98.6, 95.5};
  for (int figure = 0; figure < figures; ++figure)
    for (size_t device = 0; device < kShape.size(); ++device) {
      Measurement m;
      m.metric = "env.clock";
      m.unit = "Hz";
      m.direction = Direction::kHigher;
      m.informational = true;
      m.caseId = stage.measurements.front().caseId;
      m.device = "gpu" + std::to_string(device);
      m.labels = {{"device", m.device}, {"x", std::to_string(figure)}};
      m.samples = {kShape[(device + static_cast<size_t>(figure)) % kShape.size()]};
      stage.measurements.push_back(std::move(m));
    }
}

/// Twenty nodes whose outliers are rejected. gpu3 of n7 has `share` of the throughput of the others, and the
/// first record is a liar's: of n0, or of a node that nobody expects.
Fleet comparedBeside(double share, const Lie& lie, const std::string& liar, bool quarantined) {
  FleetFolder folder;
  fleet::FleetOptions options;
  options.rejectOutliers = true;
  for (int i = 0; i < 20; ++i) {
    Record record = nodeRecord("n" + std::to_string(i));
    vary(record, static_cast<unsigned>(i), i == 7 ? "gpu3" : "", share);
    if (record.node == liar) tell(record, lie);
    options.expected.push_back({record.node, "", false});
    folder.add(record);
  }
  if (liar == "a0") {
    Record record = nodeRecord(liar);
    tell(record, lie);
    if (quarantined) ++record.accounting.expected;
    folder.add(record);
  }
  const Fleet fleet = folder.assess(options);
  EXPECT_EQ(fleet.quarantined.size(), quarantined ? 1u : 0u);
  return fleet;
}

TEST(Fleet, NoRecordChoosesHowPeersCompareAMetric) {
  const std::vector<Lie> lies = {[](Measurement& m) { m.direction = Direction::kLower; },
                                 [](Measurement& m) { m.informational = true; },
                                 [](Measurement& m) { m.peak = "flops.of_nobody"; }};
  for (size_t lie = 0; lie < lies.size(); ++lie)
    for (const double share : {0.9, 1.1})
      for (const auto& [liar, quarantined] :
           {std::pair("n0", false), std::pair("a0", false), std::pair("a0", true)}) {
        SCOPED_TRACE(::testing::Message() << "lie " << lie << " of " << liar << ", share " << share);
        const Fleet fleet = comparedBeside(share, lies[lie], liar, quarantined);
        for (const fleet::FleetNode& node : fleet.nodes) {
          const auto state = node.name == liar                ? fleet::NodeState::kIncomplete
                             : node.name == "n7" && share < 1 ? fleet::NodeState::kRejected
                                                              : fleet::NodeState::kAccepted;
          EXPECT_EQ(node.state, state) << node.name << ": " << node.reason;
        }
        ASSERT_EQ(fleet.findings.size(), std::string(liar) == "n0" ? 1u : 0u);
        if (fleet.findings.empty()) continue;
        EXPECT_EQ(fleet.findings[0].nodes, std::vector<std::string>{"n0"});
        EXPECT_THAT(fleet.findings[0].text,
                    HasSubstr("1 of 20 records say that gemm: compute.gemm_throughput"));
      }
}

/// All are behind 90% of the peak; the liar comes first, and says that there is none.
TEST(Fleet, NoRecordTakesThePeakOfAMetricFromTheOthers) {
  for (const bool lies : {false, true}) {
    FleetFolder folder;
    fleet::FleetOptions options;
    for (int i = 0; i < 5; ++i) {
      Record record = nodeRecord("n" + std::to_string(i));
      tell(record, [&](Measurement& m) { m.peak = lies && i == 0 ? "" : "flops.bf16"; });
      options.expected.push_back({record.node, "", false});
      folder.add(record);
      Expectation wanted;
      wanted.metric = "compute.gemm_throughput";
      wanted.kind = CheckKind::kOfPeak;
      wanted.limit = 0.9;
      options.profiles[record.profile.sha256] = {{wanted}, {{"flops.bf16", 989.4e12}}};
    }
    const Fleet fleet = folder.assess(options);
    EXPECT_EQ(std::count_if(fleet.suspects.begin(), fleet.suspects.end(),
                            [](const auto& s) { return s.kind == SuspectKind::kGroup; }),
              1);
  }
}

/// Figures that one node alone has say nothing of what is usual, however many they are.
TEST(Fleet, NoRecordHidesAnOutlierByFiguresOfItsOwn) {
  for (const int figures : {0, 4000}) {
    FleetFolder folder;
    fleet::FleetOptions options;
    options.rejectOutliers = true;
    for (int i = 0; i < 12; ++i) {
      Record record = nodeRecord("n" + std::to_string(i));
      vary(record, static_cast<unsigned>(i), i == 7 ? "gpu3" : "", 0.93);
      if (i == 5) addClocks(record.stages.back(), figures);
      options.expected.push_back({record.node, "", false});
      folder.add(record);
    }
    const Fleet fleet = folder.assess(options);
    for (const fleet::FleetNode& node : fleet.nodes)
      EXPECT_EQ(node.state, node.name == "n7" ? fleet::NodeState::kRejected : fleet::NodeState::kAccepted)
          << figures << " " << node.name << ": " << node.reason;
    EXPECT_EQ(
        std::count_if(fleet.notes.begin(), fleet.notes.end(),
                      [](const std::string& note) {
                        return note.find("4000 metrics were not compared: only one node, or fewer than") !=
                               std::string::npos;
                      }),
        figures > 0 ? 1 : 0);
  }
}

/// What one node measured that the profile limits says nothing of all.
TEST(Fleet, NoRecordPutsAllNodesBehindTheirProfile) {
  for (const int nodes : {3, 12}) {
    FleetFolder folder;
    fleet::FleetOptions options;
    Expectation wanted;
    wanted.metric = "env.clock";
    wanted.kind = CheckKind::kMin;
    wanted.limit = 1e9;
    for (int i = 0; i < nodes; ++i) {
      Record record = nodeRecord("n" + std::to_string(i));
      if (i == 1) addClocks(record.stages.back(), 1);
      options.expected.push_back({record.node, "", false});
      options.profiles[record.profile.sha256] = {{wanted}, {}};
      folder.add(record);
    }
    const Fleet fleet = folder.assess(options);
    EXPECT_TRUE(fleet.suspects.empty()) << nodes;
    EXPECT_EQ(fleet.exitCode, 0) << nodes;
  }
}

/// One node with another number of devices is a group of its own, and not the fleet.
TEST(Fleet, ANodeOfAnotherSizeIsNotTheWholeFleet) {
  FleetFolder folder;
  fleet::FleetOptions options;
  Expectation wanted;
  wanted.metric = "compute.gemm_throughput";
  wanted.kind = CheckKind::kMin;
  wanted.limit = 1e14;
  for (int i = 0; i < 4; ++i) {
    Record record = nodeRecord("n" + std::to_string(i));
    if (i == 3) {
      record.inventory["devices"].erase(7);
      for (StageRecord& stage : record.stages) {
        std::erase_if(stage.measurements, [](const Measurement& m) { return m.device == "gpu7"; });
        for (Measurement& m : stage.measurements)
          for (double& sample : m.samples) sample *= m.metric == wanted.metric ? 0.1 : 1;
      }
    }
    options.expected.push_back({record.node, "", false});
    options.profiles[record.profile.sha256] = {{wanted}, {}};
    folder.add(record);
  }
  const Fleet fleet = folder.assess(options);
  EXPECT_NE(fleet.nodes.at(3).state, fleet::NodeState::kAccepted);
  for (const fleet::Suspect& suspect : fleet.suspects)
    EXPECT_NE(suspect.kind, SuspectKind::kGroup) << suspect.evidence.front();
  EXPECT_EQ(fleet.keyFigures[0].points.size(), 24u);
}

/// Of two that differ nobody can say which is right: neither is accepted.
TEST(Fleet, WithoutAMajorityNoRecordSaysHowAMetricIsCompared) {
  FleetFolder folder;
  for (const char* name : {"n0", "n1"}) {
    Record record = nodeRecord(name);
    if (record.node == "n0") tell(record, [](Measurement& m) { m.direction = Direction::kLower; });
    folder.add(record);
  }
  const Fleet fleet = folder.assess(std::vector<std::string>{"n0", "n1"});
  EXPECT_EQ(nodeOf(fleet, "n0").state, fleet::NodeState::kIncomplete);
  EXPECT_EQ(nodeOf(fleet, "n1").state, fleet::NodeState::kIncomplete);
  EXPECT_EQ(fleet.findings.size(), 2u);
}

/// A column costs a value in every row, whoever has it.
TEST(Fleet, ComparesNothingThatOneOfManyNodesAloneHas) {
  FleetFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 72; ++i) {
    names.push_back("n" + std::to_string(i));
    Record record = nodeRecord(names.back());
    if (i == 5) {
      tell(record, [](Measurement& m) { m.labels["of"] = "n5"; });
      for (StageRecord& stage : record.stages)
        for (Verdict& verdict : stage.verdicts)
          if (verdict.metric == "compute.gemm_throughput") verdict.labels["of"] = "n5";
    }
    folder.add(record);
  }
  const Fleet fleet = folder.assess(names);
  EXPECT_EQ(fleet.quarantined.size(), 0u);
  EXPECT_FALSE(fleet.distributions.empty());
  for (const auto& distribution : fleet.distributions)
    EXPECT_THAT(distribution.name, Not(HasSubstr("of=n5")));
  EXPECT_THAT(fleet.notes, ::testing::Contains(HasSubstr("fewer than one device in 64")));
}

/// The limit is within 10% of the fleet's median. Whatever the first node claims: a node that meets the limit
/// which all others set by themselves is not rejected.
TEST(Fleet, NoClaimRejectsANodeThatMeetsTheLimitOfTheOthers) {
  EXPECT_EQ(statesOf({19e14, 10e14, 8.9e14})[2], fleet::NodeState::kIncomplete) << "the other two allow 8.5";
  EXPECT_EQ(statesOf({19e14, 10e14, 5e14})[2], fleet::NodeState::kRejected) << "missed without the claim too";
  std::mt19937 random(11);
  std::uniform_real_distribution<double> figure(7e14, 10e14);
  int spared = 0;
  for (int round = 0; round < 25; ++round) {
    std::vector<double> honest(2 + random() % 4);
    for (double& value : honest) value = figure(random);
    const double limit = 0.9 * medianOf(honest);
    std::vector<double> all = {figure(random) * (random() % 2 == 0 ? 1e-3 : 2)};
    all.insert(all.end(), honest.begin(), honest.end());
    const auto states = statesOf(all);
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i] < limit) continue;
      EXPECT_NE(states[i], fleet::NodeState::kRejected) << "round " << round << ", node " << i;
      spared += states[i] == fleet::NodeState::kIncomplete ? 1 : 0;
    }
  }
  EXPECT_GT(spared, 0) << "no claim made any difference";
}

TEST(Fleet, EachNodeHasOneVoteAndOnlyForWhatItMeasured) {
  for (const bool measured : {false, true}) {
    FleetFolder folder;
    std::vector<std::string> names;
    for (int i = 0; i < 5; ++i) {
      names.push_back("n" + std::to_string(i));
      Record record = nodeRecord(names.back());
      defer(record, 7e14);
      if (i == 0)
        for (StageRecord& stage : record.stages) {
          const auto own = std::find_if(stage.verdicts.begin(), stage.verdicts.end(),
                                        [](const Verdict& v) { return v.outcome == Outcome::kDeferred; });
          if (own == stage.verdicts.end()) continue;
          const Verdict real = *own;
          const auto isOfIt = [&](const auto& item) {
            return item.metric == real.metric && item.caseId == real.caseId && item.device == "gpu0";
          };
          std::vector<Verdict> verdicts;
          std::copy_if(stage.verdicts.begin(), stage.verdicts.end(), std::back_inserter(verdicts), isOfIt);
          const Measurement figure =
              *std::find_if(stage.measurements.begin(), stage.measurements.end(), isOfIt);
          for (int ghost = 0; ghost < 20; ++ghost) {
            const auto haunt = [&](auto item) {
              item.device = "ghost" + std::to_string(ghost);
              item.rank = 100 + ghost;
              if (item.labels.contains("device")) item.labels["device"] = item.device;
              return item;
            };
            for (const Verdict& verdict : verdicts) {
              stage.verdicts.push_back(haunt(verdict));
              if (verdict.outcome == Outcome::kDeferred) stage.verdicts.back().observed = 9e14;
            }
            if (!measured) continue;
            stage.measurements.push_back(haunt(figure));
            stage.measurements.back().samples.front() = 9e14;
          }
          settle(record);
        }
      folder.add(record);
    }
    const Fleet fleet = folder.assess(names);
    for (const char* honest : {"n1", "n2", "n3", "n4"})
      EXPECT_EQ(nodeOf(fleet, honest).state, fleet::NodeState::kAccepted) << nodeOf(fleet, honest).reason;
    ASSERT_EQ(fleet.quarantined.size(), measured ? 0u : 1u);
    if (measured) continue;
    EXPECT_THAT(fleet.quarantined[0].reason, HasSubstr("ghost0 is deferred, and was not measured there"));
  }
}

TEST(Fleet, DoesNotExcludeSingleDevicesWhereAllNodesRunOneStageTogether) {
  for (const bool together : {false, true}) {
    FleetFolder folder;
    std::vector<std::string> names;
    for (int i = 0; i < 4; ++i) {
      names.push_back("n" + std::to_string(i));
      Record record = failedRecord(names.back(), "gpu" + std::to_string(i));
      record.nodeRank = i;
      record.nodeCount = 4;
      if (together)
        for (StageRecord& stage : record.stages) stage.scope = Scope::kCluster;
      folder.add(record);
    }
    const Fleet fleet = folder.assess(names);
    ASSERT_FALSE(fleet.suspects.empty());
    EXPECT_EQ(fleet.suspects[0].kind, fleet::SuspectKind::kGroup);
    EXPECT_THAT(
        fleet.suspects[0].evidence[0],
        HasSubstr(together ? "a single rank or link can fail all of them" : "not a single-device fault"));
  }
}

TEST(Fleet, IsNotAcceptedWithoutTheRecordThatHoldsWhatAGroupMeasuredTogether) {
  for (const int first : {0, 1}) {
    FleetFolder folder;
    std::vector<std::string> names;
    for (int i = first; i < 4; ++i) {
      names.push_back("n" + std::to_string(i));
      Record record = nodeRecord(names.back());
      record.nodeRank = i;
      record.nodeCount = 4;
      joinGroup(record.stages.back(), i, 4);
      folder.add(record);
    }
    const Fleet fleet = folder.assess(names);
    EXPECT_EQ(fleet.states[static_cast<size_t>(fleet::NodeState::kAccepted)], names.size());
    EXPECT_EQ(fleet.exitCode, first == 0 ? 0 : 3) << "each node is accepted, and nobody judged the group";
    if (first == 1) {
      ASSERT_EQ(fleet.reasons.size(), 1u);
      EXPECT_THAT(fleet.reasons[0], HasSubstr("of 4 nodes (n1, n2, n3): no record of its first node"));
    }
  }
}

TEST(Fleet, CountsTheRunOfAllNodesBeforeALaterOneOfSome) {
  FleetFolder folder;
  const std::vector<std::string> names = {"n0", "n1", "n2"};
  for (const int count : {3, 2})
    for (int i = 0; i < count; ++i) {
      Record record = nodeRecord(names[static_cast<size_t>(i)]);
      record.nodeRank = i;
      record.nodeCount = count;
      record.started -= 1000 * count;
      joinGroup(record.stages.back(), i, count);
      folder.add(record, fmt::format("{}-of-{}", record.node, count));
    }
  const Fleet fleet = folder.assess(names);
  EXPECT_EQ(fleet.exitCode, 0) << join(fleet.reasons, "\n");
  ASSERT_EQ(fleet.duplicates.size(), 2u);
  EXPECT_EQ(fleet.duplicates[0].path, "n0-of-2/record.json");
}

TEST(Fleet, CannotJudgeWhatOneNodeAloneDeferred) {
  FleetFolder folder;
  Record record = nodeRecord("n1");
  defer(record, 7e14);
  folder.add(record);
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(fleet.exitCode, 3);
  EXPECT_EQ(nodeOf(fleet, "n1").state, fleet::NodeState::kIncomplete);
}

/// A fleet with something of every kind.
Fleet mixedFleet(FleetFolder& folder) {
  fleet::FleetOptions options;
  for (const std::string& name : addNodes(folder, 10)) options.expected.push_back({name, "", false});
  Record sick = failedRecord("sick");
  sick.inventory["host"]["kernel"] = "<script>alert(1)</script>";
  folder.add(sick);
  folder.add(nodeRecord("stranger"));
  folder.add(nodeRecord("n0"), "again/n0");
  folder.write("torn/record.json", "{");
  Record deferred = nodeRecord("late");
  defer(deferred, 7e14);
  folder.add(deferred);
  options.expected.push_back({"sick", "", false});
  options.expected.push_back({"late", "", false});
  options.expected.push_back({"gone", "", false});
  options.expectedFrom = "<b>nodes.txt</b>";
  Fleet fleet = folder.assess(options);
  fleet.delta.emplace();
  fleet.delta->since = "runs/<i>first</i>";
  fleet.delta->sinceSha256 = std::string(64, 'd');
  fleet.delta->sinceFinished = 86400;
  fleet.delta->kept = 12;
  fleet.delta->nodes.push_back(
      {"n3", {{"again/n3/record.json", "n3-again", 90000}}, {"gpu3: S3 replaced by <S9>"}});
  return fleet;
}

TEST(FleetJson, IsValidAndTheSameEachTime) {
  FleetFolder folder;
  const std::string text = fleetText(mixedFleet(folder), folder.records());
  FleetFolder other;
  EXPECT_EQ(text, fleetText(mixedFleet(other), other.records()));
  using Plain = nlohmann::json;
  const Plain schemaText =
      Plain::parse(testing::readWhole(testing::sourceDir() / "reports/fleet/fleet.schema.json"));
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(schemaText), schema);
  const auto valid = [&](const Plain& document) {
    valijson::Validator validator;
    return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
  };
  Plain document = Plain::parse(text);
  EXPECT_TRUE(valid(document));
  for (const char* key : {"since", "since_sha256", "since_finished", "kept", "nodes"}) {
    Plain less = document;
    less["delta"].erase(key);
    EXPECT_FALSE(valid(less)) << key;
  }
  Plain whole = document;
  whole.erase("delta");
  EXPECT_TRUE(valid(whole)) << "most fleets are measured as a whole";
  document["nodes"][0]["state"] = "fine";
  EXPECT_FALSE(valid(document)) << "the schema is closed";
}

TEST(FleetHtml, IsSelfContainedAndEscaped) {
  FleetFolder folder;
  const Fleet fleet = mixedFleet(folder);
  const testing::TemplatesFolder templates;
  const auto html = renderFleetHtml(fleet, folder.records(), std::string(64, 'c'), templates.path());
  ASSERT_TRUE(html.ok()) << html.error().text();
  for (const char* part :
       {"REJECTED", "SIMULATED", "default-src 'none'", "&lt;script&gt;alert(1)", "n7", "gone", "stranger",
        "a duplicate", "truncated: the JSON ends", "class=\"racks\"",
        "Incremental re-acceptance: 1 of 13 nodes retested", "again/n3/record.json", "replaced by &lt;S9&gt;",
        "1970-01-02", "Findings, most serious first", "can be accepted."})
    EXPECT_THAT(*html, HasSubstr(part));
  for (const char* part : {"<script>alert", "<b>nodes.txt", "<i>first", "<S9>", "src=\"http", "style=\""})
    EXPECT_THAT(*html, Not(HasSubstr(part)));
  const size_t begin = html->find("<script>") + 8;
  EXPECT_THAT(*html, HasSubstr(cspDigest(html->substr(begin, html->find("</script>") - begin))));
}

TEST(FleetHtml, NamesAMissingTemplate) {
  const testing::TempDir empty;
  FleetFolder folder;
  const auto html = renderFleetHtml(mixedFleet(folder), folder.records(), "", empty.path());
  ASSERT_FALSE(html.ok());
  EXPECT_THAT(html.error().text(), HasSubstr("fleet.mustache"));
}

TEST(FleetTerminal, SaysTheVerdictFirstAndNoControlCharacters) {
  FleetFolder folder;
  const std::string text = renderFleetSummary(mixedFleet(folder), 100);
  EXPECT_EQ(text.rfind("SIMULATED REJECTED", 0), 0u) << text;
  for (const char* part : {"missing gone", "rejected sick", "n7 gpu3", "Duplicates (1)", "Quarantined (1)"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace muster
