// SPDX-License-Identifier: Apache-2.0
// Every expected node is in exactly one state, whatever lies in the folder; nothing is counted twice.
#include "reports/fleet/assess/coverage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runner/core/text.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using fleet::Fleet;
using fleet::NodeState;
using testing::failedRecord;
using testing::FleetFolder;
using ::testing::HasSubstr;
using testing::leaveElsewhere;
using testing::nodeOf;
using testing::nodeRecord;
using ::testing::Not;
using testing::settle;

TEST(Coverage, AcceptsAFleetWhoseNodesAreAllAccepted) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2", "n3"}) folder.add(nodeRecord(name), std::string("deep/er/") + name);
  const Fleet fleet = folder.assess({"n1", "n2", "n3"});
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted);
  EXPECT_EQ(fleet.exitCode, 0);
  EXPECT_EQ(fleet.accounting.expected, 3 * nodeRecord("n1").accounting.expected);
}

TEST(Coverage, PutsEachExpectedNodeIntoOneState) {
  FleetFolder folder;
  folder.add(nodeRecord("good"));
  folder.add(failedRecord("sick"));
  Record stale = nodeRecord("stale");
  testing::givePlan(stale, "another");
  folder.add(stale);
  folder.add(nodeRecord("stranger"));
  folder.write("torn/record.json", "{");
  fleet::FleetOptions options;
  options.expected = {{"good", "", false},
                      {"sick", "", false},
                      {"stale", "", false},
                      {"gone", "", false},
                      {"off", "down Not responding", false},
                      {"idle", "drained bad DIMM", true}};
  const Fleet fleet = folder.assess(options);
  EXPECT_EQ(nodeOf(fleet, "good").state, NodeState::kAccepted);
  EXPECT_EQ(nodeOf(fleet, "sick").state, NodeState::kRejected);
  EXPECT_EQ(nodeOf(fleet, "stale").state, NodeState::kStale);
  EXPECT_EQ(nodeOf(fleet, "gone").state, NodeState::kMissing);
  EXPECT_EQ(nodeOf(fleet, "off").state, NodeState::kDown);
  EXPECT_EQ(nodeOf(fleet, "idle").state, NodeState::kDrained);
  EXPECT_EQ(std::accumulate(fleet.states.begin(), fleet.states.end(), size_t{0}), 6u);
  ASSERT_EQ(fleet.foreign.size(), 1u);
  EXPECT_EQ(fleet.foreign[0].node, "stranger");
  EXPECT_THAT(fleet.stale[0].reason, HasSubstr("of another plan"));
  EXPECT_EQ(fleet.exitCode, 1);
}

TEST(Coverage, IsIncompleteWithoutAnyRecord) {
  FleetFolder folder;
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(fleet.exitCode, 3);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kMissing);
}

TEST(Coverage, RefusesExpectationsThatCannotBeMet) {
  FleetFolder folder;
  folder.add(nodeRecord("n1"));
  auto records = fleet::readFleet(folder.path());
  ASSERT_TRUE(records.ok());
  fleet::FleetOptions options;
  EXPECT_EQ(assess(*records, options).error().code, ErrorCode::kUsage);
  options.expected = {{"n1", "", false}, {"n1", "", false}};
  EXPECT_THAT(assess(*records, options).error().message, HasSubstr("listed twice"));
  options.expected = {{"../n1", "", false}};
  EXPECT_THAT(assess(*records, options).error().message, HasSubstr("not a node name"));
}

TEST(Coverage, ResolvesAndNamesDuplicates) {
  FleetFolder folder;
  Record old = nodeRecord("n1");
  old.started -= 100;
  folder.add(old, "a");
  folder.add(nodeRecord("n1"), "b");
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(fleet.exitCode, 0);
  ASSERT_EQ(fleet.duplicates.size(), 1u);
  EXPECT_EQ(fleet.duplicates[0].path, "a/record.json");
  EXPECT_EQ(fleet.accounting.expected, old.accounting.expected) << "a node is never counted twice";
}

// Nothing in these records tells one run of the fleet from the next.
class Mixture : public ::testing::Test {
 protected:
  void add(const std::string& name, double hours, const std::string& fleetId = "") {
    Record record = nodeRecord(name);
    const double took = record.finished - record.started;
    record.started = kBegin + hours * 3600;
    record.finished = record.started + took;
    if (!fleetId.empty()) record.launcher["fleet_id"] = fleetId;
    folder_.add(record, fmt::format("{}-{}", name, hours));
  }
  std::string notes() { return join(folder_.assess({"n1", "n2", "n3"}).notes, "\n"); }

  static constexpr double kBegin = 1790000000;
  FleetFolder folder_;
};

TEST_F(Mixture, OfOneRunIsNotSuspected) {
  add("n1", 0);
  add("n2", 5);
  add("n3", 20);
  EXPECT_THAT(notes(), Not(HasSubstr("--fleet-id")));
}

/// A clock may be set back, and an end made up.
TEST_F(Mixture, OfOneRunIsNotTornByAnEndBeforeItsBegin) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) {
    Record record = nodeRecord(names.emplace_back(fmt::format("n{}", i)));
    record.started = kBegin + i;
    record.finished = i == 1 ? 0.5 : record.started + 600;
    folder_.add(record);
  }
  const Fleet fleet = folder_.assess(names);
  EXPECT_EQ(fleet.states[static_cast<size_t>(fleet::NodeState::kAccepted)], 8u) << join(fleet.reasons, "\n");
}

TEST_F(Mixture, NamesANodeThatWasNotRunAgain) {
  for (const char* name : {"n1", "n2", "n3"}) add(name, 0);
  add("n1", 2);
  add("n2", 2);
  EXPECT_THAT(notes(), HasSubstr("was run again on"));
  EXPECT_THAT(notes(), HasSubstr("the newest record of one node is older: n3; no record has a fleet run ID"));
}

TEST_F(Mixture, OfWholeRunsIsTheLastOne) {
  const char* names[] = {"n1", "n2", "n3"};
  for (int i = 0; i < 3; ++i) {  // one node after the other, twice
    add(names[i], i);
    add(names[i], 3 + i);
  }
  EXPECT_THAT(notes(), Not(HasSubstr("--fleet-id")));
}

TEST_F(Mixture, SeesALongPause) {
  add("n1", 0);
  add("n2", 1);
  add("n3", 24 * 30);
  EXPECT_THAT(notes(), HasSubstr("lie between the record of n2 ("));
  EXPECT_THAT(notes(), HasSubstr("and that of n3 ("));
}

TEST_F(Mixture, WithIdsIsToldApartByThem) {
  add("n1", 0, "may");
  add("n2", 0, "may");
  add("n3", 24 * 30, "may");
  EXPECT_THAT(notes(), Not(HasSubstr("lie between")));
}

// n1 is ten days older than n2 to n4, and n5 says anything of its times.
TEST(Coverage, APauseBetweenTwoRunsIsNotHiddenByOneRecord) {
  constexpr double kDay = 24 * 3600, kBegin = 1790000000;
  const std::pair<double, double> lies[] = {{10, 10}, {5, 5}, {-1, 11}, {0.5, 9.5}, {0.5, 0.5}};
  for (const auto& [started, finished] : lies) {
    FleetFolder folder;
    for (const char* name : {"n1", "n2", "n3", "n4", "n5"}) {
      Record record = nodeRecord(name);
      const double took = record.finished - record.started;
      record.started = kBegin + (record.node == "n5" ? started : record.node == "n1" ? 0 : 10) * kDay;
      record.finished = record.node == "n5" ? kBegin + finished * kDay + took : record.started + took;
      folder.add(record);
    }
    const Fleet fleet = folder.assess({"n1", "n2", "n3", "n4", "n5"});
    EXPECT_EQ(nodeOf(fleet, "n1").state, fleet::NodeState::kStale) << started << " to " << finished;
    for (const char* name : {"n2", "n3", "n4"})
      EXPECT_EQ(nodeOf(fleet, name).state, fleet::NodeState::kAccepted) << started << " to " << finished;
  }
}

/// Two that met are of one run, whatever the clock of one of them says.
TEST(Coverage, NobodyMakesTheRecordOfWhomItMetAnOldOne) {
  for (const bool met : {true, false}) {
    FleetFolder folder;
    for (const int number : {0, 1}) {
      Record record = nodeRecord(fmt::format("n{}", number));
      record.nodeRank = number;
      record.nodeCount = 2;
      record.stages.push_back(
          testing::metStage("ring", {"n0", "n1"}, number, 1, met ? "one" : fmt::format("of{}", number)));
      record.started += number * 32 * 86400.0;
      record.finished += number * 32 * 86400.0;
      settle(record);
      folder.add(record);
    }
    const Fleet fleet = folder.assess({"n0", "n1"});
    EXPECT_EQ(nodeOf(fleet, "n0").state == NodeState::kStale, !met) << nodeOf(fleet, "n0").reason;
  }
}

/// Where folders are numbered, one with a node's name is none that a launcher made for it.
TEST(Coverage, ATornRecordThatANodeMakesBelowItsNumberedFolderIsOfNobodyElse) {
  FleetFolder folder;
  folder.add(nodeRecord("n1"), "node-0000");
  folder.add(nodeRecord("n2"), "node-0001");
  folder.add(nodeRecord("n3"), "node-0002/n3");
  for (const char* name : {"n1", "n2"}) folder.write(fmt::format("node-0002/{}/record.json", name), "{");
  for (const bool kept : {false, true}) {
    if (kept) folder.add(nodeRecord("n1"), "kept/n1");
    const Fleet fleet = folder.assess({"n1", "n2", "n3"});
    for (const char* name : {"n1", "n2", "n3"})
      EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kAccepted) << kept << nodeOf(fleet, name).reason;
  }
  // A stray record in a folder of another name does not make these numbered.
  FleetFolder named;
  for (const char* name : {"n1", "n2", "n3"}) named.add(nodeRecord(name), std::string("first/") + name);
  named.add(nodeRecord("n1"), "again");
  named.write("second/n2/record.json", "{");
  EXPECT_EQ(nodeOf(named.assess({"n1", "n2", "n3"}), "n2").state, NodeState::kIncomplete);
  // Beside the numbered ones, in a tree of its own, it is one.
  FleetFolder other;
  other.add(nodeRecord("n1"), "first/node-0000");
  other.add(nodeRecord("n2"), "first/node-0001");
  other.write("again/n2/record.json", "{");
  const Fleet fleet = other.assess({"n1", "n2"});
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kIncomplete);
}

TEST(Coverage, IsNotPassedByTryingAgain) {
  FleetFolder folder;
  Record old = failedRecord("n1");
  old.started -= 100;
  folder.add(old, "first");
  folder.add(nodeRecord("n1"), "second");
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(fleet.exitCode, 1);
  ASSERT_EQ(fleet.duplicates.size(), 1u);
  EXPECT_THAT(fleet.duplicates[0].reason, HasSubstr("a repeated run does not replace a failed one"));
}

TEST(Coverage, SetsAsideRecordsOfAnotherRun) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2"}) folder.add(nodeRecord(name));
  Record changed = nodeRecord("n3");
  changed.overrides = {"gemm.size=64"};
  folder.add(changed);
  Record real = nodeRecord("n4");
  real.simulated = false;
  real.backend = "cuda";
  real.scenario = "";
  folder.add(real);
  const Fleet fleet = folder.assess({"n1", "n2", "n3", "n4"});
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kStale);
  EXPECT_THAT(nodeOf(fleet, "n3").reason, HasSubstr("--set gemm.size=64 where the others have no --set"));
  EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kStale);
  EXPECT_THAT(nodeOf(fleet, "n4").reason, HasSubstr("it is not simulated"));
}

/// It was not the better one because the newer one lost a node.
TEST(Coverage, TakesTheNewerOfTwoRunsOfMostNodes) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2", "n3", "n4"}) {
    Record before = nodeRecord(name);
    before.launcher["fleet_id"] = "monday";
    folder.add(before, std::string("monday/") + name);
    if (std::string(name) == "n4") continue;
    Record after = std::string(name) == "n1" ? failedRecord(name) : nodeRecord(name);
    after.launcher["fleet_id"] = "friday";
    after.started += 86400;
    after.finished += 86400;
    folder.add(after, std::string("friday/") + name);
  }
  const Fleet fleet = folder.assess({"n1", "n2", "n3", "n4"});
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kRejected);
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kAccepted);
  EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kStale);
}

TEST(Coverage, AcceptsNoNodeWhoseNewerRunFailedAndIsNotCounted) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2", "n3", "n4"}) folder.add(nodeRecord(name));
  for (const char* name : {"n1", "n2"}) {
    Record after = std::string(name) == "n1" ? failedRecord(name) : nodeRecord(name);
    testing::givePlan(after, "a closer look");
    after.started += std::string(name) == "n1" ? 86400 : -86400;
    after.finished += std::string(name) == "n1" ? 86400 : -86400;
    folder.add(after, std::string("look/") + name);
  }
  fleet::FleetOptions options;
  for (const char* name : {"n1", "n2", "n3", "n4"}) options.expected.push_back({name, "", false});
  const Fleet fleet = folder.assess(options);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kIncomplete);
  EXPECT_THAT(nodeOf(fleet, "n1").reason, HasSubstr("a newer run of it, look/n1/record.json, is rejected"));
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kAccepted) << nodeOf(fleet, "n2").reason;
  options.planSha256 = nodeRecord("n1").plan.sha256;
  EXPECT_EQ(nodeOf(folder.assess(options), "n1").state, NodeState::kAccepted);
  // They do not differ in that.
  Record again = failedRecord("n2");
  again.launcher["fleet_id"] = "again";
  again.started += 86400;
  again.finished += 86400;
  folder.add(again, "again/n2");
  EXPECT_EQ(nodeOf(folder.assess(options), "n2").state, NodeState::kIncomplete);
}

/// Each lost another node: the newer one counts, and they are no rivals.
TEST(Coverage, TakesTheNewerOfTwoRunsOfAsManyNodes) {
  FleetFolder folder;
  for (const bool newer : {false, true})
    for (const char* name : {"n1", "n2", "n3", "n4"}) {
      if (std::string(name) == (newer ? "n3" : "n4")) continue;
      Record record = nodeRecord(name);
      record.launcher["fleet_id"] = newer ? "friday" : "monday";
      record.started += newer ? 86400 : 0;
      record.finished += newer ? 86400 : 0;
      folder.add(record, std::string(newer ? "friday/" : "monday/") + name);
    }
  const Fleet fleet = folder.assess({"n1", "n2", "n3", "n4"});
  for (const char* name : {"n1", "n2", "n4"})
    EXPECT_EQ(nodeOf(fleet, name).state, NodeState::kAccepted) << nodeOf(fleet, name).reason;
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kStale);
}

TEST(Coverage, AcceptsNoNodeBesideARecordOfItThatCannotBeRead) {
  FleetFolder folder;
  for (const char* name : {"n1", "n2"}) folder.add(nodeRecord(name));
  folder.add(nodeRecord("n3"));
  folder.write("again/n1/record.json", "{\"schema\": 2, \"acceptance\": \"rej");
  folder.write("later/n2/records/nodes/n2/record.json", "");
  const Fleet fleet = folder.assess({"n1", "n2", "n3"});
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kIncomplete);
  EXPECT_THAT(nodeOf(fleet, "n1").reason, HasSubstr("again/n1/record.json cannot be read"));
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kIncomplete);
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kAccepted);
  // What is in another node's directory, or of another schema, is no record of it.
  FleetFolder other;
  for (const char* name : {"n1", "n2"}) other.add(nodeRecord(name));
  other.write("n1/kept/n2/record.json", "{");
  other.write("old/n2/record.json", "{\"schema\": 1}");
  EXPECT_EQ(nodeOf(other.assess({"n1", "n2"}), "n2").state, NodeState::kAccepted);
}

/// Where records need the MAC of their node, a file without one speaks of nobody.
TEST(Coverage, HoldsNoTornRecordAgainstANodeWhereItHadToShowAMac) {
  FleetFolder folder;
  folder.write("n1/record.json", "{");
  fleet::RecordRules rules;
  for (const bool keyed : {false, true}) {
    if (keyed) rules.origin.runKey = std::string(64, 'a');
    const auto records = fleet::readFleet(folder.path(), 1, {}, {}, rules);
    ASSERT_TRUE(records.ok()) << records.error().text();
    ASSERT_EQ(records->quarantined.size(), 1u);
    EXPECT_EQ(records->quarantined[0].torn, !keyed);
  }
}

TEST(Coverage, PutsJobsOfDifferentScopesTogether) {
  const Record whole = nodeRecord("n1");
  ASSERT_GE(whole.stages.size(), 2u);
  const std::string first = whole.stages[0].name;
  const std::string second = whole.stages[1].name;
  Record nodeJob = whole;
  Record clusterJob = whole;
  leaveElsewhere(nodeJob, second);
  for (const StageRecord& stage : whole.stages)
    if (stage.name != second) leaveElsewhere(clusterJob, stage.name);
  FleetFolder folder;
  folder.add(nodeJob, "nodes/n1");
  {
    const Fleet fleet = folder.assess({"n1"});
    EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kIncomplete);
    EXPECT_THAT(nodeOf(fleet, "n1").reason, HasSubstr("no record of the job that runs " + second));
  }
  folder.add(clusterJob, "cluster/n1");
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted) << nodeOf(fleet, "n1").reason;
  EXPECT_EQ(fleet.accounting.expected, whole.accounting.expected);
  EXPECT_TRUE(fleet.duplicates.empty());
  EXPECT_EQ(fleet.accounting.of(Outcome::kElsewhere), 0u);
}

/// The whole plan ran first, and the stages of one job once more.
TEST(Coverage, TakesARecordOfSomeStagesBesideTheOneThatRanAll) {
  const Record whole = nodeRecord("n1");
  Record again = whole;
  again.started += 100;
  again.finished += 100;
  for (const StageRecord& stage : whole.stages)
    if (stage.name != whole.stages[1].name) leaveElsewhere(again, stage.name);
  FleetFolder folder;
  folder.add(whole, "whole");
  folder.add(again, "again");
  const Fleet fleet = folder.assess({"n1"});
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted) << nodeOf(fleet, "n1").reason;
  EXPECT_EQ(fleet.accounting.expected, whole.accounting.expected);
}

TEST(Coverage, CountsWhatAGroupSharesOnce) {
  FleetFolder folder;
  Record record = nodeRecord("n1");
  const size_t before = record.accounting.expected;
  StageRecord& stage = record.stages.back();
  stage.scope = Scope::kCluster;
  stage.group = {{"world_size", 16}, {"first_rank", 0}, {"nodes", 2}, {"culprit", ""}};
  Verdict shared;
  shared.outcome = Outcome::kPass;
  shared.stage = stage.name;
  stage.verdicts.push_back(shared);
  settle(record);
  folder.add(record);
  record.node = "n2";
  testing::giveParts(record, "n2");
  folder.add(record);
  const Fleet fleet = folder.assess({"n1", "n2"});
  EXPECT_EQ(fleet.accounting.expected, 2 * before + 1);
  ASSERT_EQ(fleet.groups.size(), 1u);
  EXPECT_EQ(fleet.groups[0].records, 2u);
}

}  // namespace
}  // namespace muster
