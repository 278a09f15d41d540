// SPDX-License-Identifier: Apache-2.0
// Delta acceptance: who must run again, what counts, and what does not belong together.
#include "reports/history/delta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/fleet/read/name_table.h"
#include "runner/system/files.h"

namespace muster::history {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kAccepted = 1e9;  // when the fleet was measured
constexpr double kLater = 2e9;

/// A fleet of three nodes with two GPUs each, accepted; new records are added by the tests.
class HistoryDelta : public ::testing::Test {
 protected:
  HistoryDelta() {
    input_.accepted.planSha256 = "plan";
    input_.accepted.acceptance = Acceptance::kAccepted;
    input_.accepted.finished = kAccepted + 100;
    for (const char* name : {"n1", "n2", "n3"}) {
      const size_t i = add(record(name, kAccepted), RecordUse::kAccepted);
      input_.accepted.nodes.push_back(
          {name, fleet::NodeState::kAccepted, "", {{std::string(name) + "/record.json", of(i).sha256}}});
    }
  }

  fleet::NodeSummary record(const std::string& name, double started) {
    fleet::NodeSummary node;
    node.node = name;
    node.started = started;
    node.finished = started + 10;
    node.path = name + "/" + std::to_string(static_cast<int64_t>(started)) + ".json";
    node.sha256 = sha256Hex(node.path);
    node.planSha256 = "plan";
    node.profileSha256 = "profile";
    node.profileName = "h100";
    node.backend = "cuda";
    node.acceptance = Acceptance::kAccepted;
    for (const char* gpu : {"gpu0", "gpu1"})
      node.devices.push_back({gpu, "gpu", "H100", "", name + "-" + gpu, ""});
    stage(node, "gemm", Scope::kDevice);
    fact(node, -1, "software.driver", "580");
    return node;
  }
  void stage(fleet::NodeSummary& node, const std::string& name, Scope scope, int group = 0) {
    fleet::StageSummary stage;
    stage.name = names().text(name);
    stage.scope = scope;
    stage.state = StageState::kRan;
    stage.groupNodes = group;
    stage.groupId = names().text("");
    node.stages.push_back(stage);
  }
  void fact(fleet::NodeSummary& node, int device, const std::string& name, const std::string& value) {
    node.facts.push_back({static_cast<int16_t>(device), names().text(name), names().text(value)});
  }
  size_t add(fleet::NodeSummary node, RecordUse use) {
    input_.records.nodes.push_back(std::move(node));
    input_.uses.push_back(use);
    return input_.uses.size() - 1;
  }
  /// A record after the acceptance in which gpu1 is another one.
  fleet::NodeSummary replaced(const std::string& name, double started = kLater) {
    fleet::NodeSummary node = record(name, started);
    node.devices[1].serial = "new";
    return node;
  }
  fleet::NodeSummary& of(size_t i) { return input_.records.nodes[i]; }
  fleet::FleetNames& names() { return *input_.records.names; }
  Delta plan() { return planDelta(input_); }

  DeltaInput input_;
};

TEST_F(HistoryDelta, KeepsAFleetOfWhichNothingSpeaksOtherwise) {
  add(record("n2", kLater), RecordUse::kSurvey);
  const Delta delta = plan();
  EXPECT_THAT(delta.mismatches, IsEmpty());
  EXPECT_THAT(delta.needing(), IsEmpty());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(delta.nodes[i].state, DeltaState::kKept);
    EXPECT_THAT(delta.nodes[i].records, ElementsAre(i));
  }
}

TEST_F(HistoryDelta, WantsANodeRunAgainInWhichAPartWasReplaced) {
  add(replaced("n2"), RecordUse::kSurvey);
  const Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n2"));
  ASSERT_THAT(delta.nodes[1].parts, SizeIs(1));
  EXPECT_EQ(delta.nodes[1].parts[0].text(), "gpu1: n2-gpu1 replaced by new");
  EXPECT_THAT(delta.nodes[1].why, HasSubstr("not retested since"));
}

/// A spare node, or one that was given another name.
TEST_F(HistoryDelta, WantsANodeRunAgainWhosePartIsInANodeOutsideTheFleet) {
  const size_t spare = add(record("spare", kLater), RecordUse::kSurvey);
  EXPECT_THAT(plan().needing(), IsEmpty());
  of(spare).devices[0].serial = "n2-gpu1";
  Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n2"));
  EXPECT_EQ(delta.nodes[1].why, "its gpu1 (serial n2-gpu1) is now in spare");
  EXPECT_THAT(delta.notes, ElementsAre(HasSubstr("node spare is not in the accepted fleet")));
  of(spare).started = kAccepted - 1;
  EXPECT_THAT(plan().needing(), IsEmpty()) << "it was there before the acceptance";
  of(spare).started = kLater;
  const size_t again = add(replaced("n2"), RecordUse::kRerun);
  EXPECT_THAT(plan().needing(), IsEmpty()) << "it ran without that part";
  of(again) = record("n2", kLater + 5);
  EXPECT_THAT(plan().needing(), IsEmpty()) << "the part came back, and was tested there";
  input_.uses[again] = RecordUse::kSurvey;
  EXPECT_THAT(plan().needing(), ElementsAre("n2")) << "it only came back";
}

TEST_F(HistoryDelta, WantsTheNodeRunAgainWhosePartAnotherHadInBetween) {
  auto moved = record("n2", kLater);
  moved.devices[1].serial = "n3-gpu0";
  add(moved, RecordUse::kSurvey);
  add(replaced("n2", kLater + 100), RecordUse::kRerun);
  const Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n3")) << "nobody has looked at it since";
}

TEST_F(HistoryDelta, WantsANodeRunAgainThatHadAnotherPartInBetween) {
  add(replaced("n2"), RecordUse::kSurvey);
  add(record("n2", kLater + 100), RecordUse::kSurvey);
  const Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n2"));
  EXPECT_THAT(delta.nodes[1].why, HasSubstr("gpu1: n2-gpu1 replaced by new on 2033-05-18"));
  add(record("n2", kLater + 200), RecordUse::kRerun);
  EXPECT_THAT(plan().needing(), IsEmpty());
}

TEST_F(HistoryDelta, TakesNoRunsOfANodeThatDiffer) {
  add(replaced("n2"), RecordUse::kRerun);
  auto other = replaced("n2", kLater + 100);
  const size_t later = add(other, RecordUse::kRerun);
  EXPECT_THAT(plan().needing(), IsEmpty());
  of(later).facts.front().value = names().text("590");
  EXPECT_THAT(plan().nodes[1].why, HasSubstr("are of different parts or software"));
  of(later) = other;
  of(later).devices[0].serial = "newer";
  EXPECT_THAT(plan().nodes[1].why, HasSubstr("gpu0: n2-gpu0 replaced by newer"));
}

/// Two pairs: the record of node 0 of one of them is lost, and the other's does not stand in for it.
TEST_F(HistoryDelta, WantsAllRecordsOfEachNewGroup) {
  stage(of(0), "allreduce", Scope::kCluster, 3);
  const auto pair = [&](const std::string& name, int rank, const std::string& group) {
    auto node = record(name, kLater);
    stage(node, "allreduce", Scope::kCluster, 2);
    node.stages.back().groupId = names().text(group);
    node.nodeCount = 2;
    node.nodeRank = rank;
    return add(node, RecordUse::kRerun);
  };
  for (const bool told : {true, false}) {
    input_.records.nodes.resize(3);
    input_.uses.resize(3);
    pair("n1", 0, told ? "A" : "");
    pair("n2", 1, told ? "A" : "");
    EXPECT_THAT(plan().needing(), IsEmpty());
    pair("n3", 1, told ? "B" : "");
    const Delta delta = plan();
    EXPECT_THAT(delta.needing(), Contains("n3"));
    EXPECT_THAT(delta.nodes[2].why, HasSubstr("of its run of 2 nodes 1 record is not among the new ones"));
    EXPECT_EQ(delta.needing().size(), told ? 1u : 3u);
    // An attempt in which its node met nobody does not fill the gap.
    auto alone = record("n1", kLater - 5);
    alone.nodeCount = 2;
    add(alone, RecordUse::kRerun);
    EXPECT_THAT(plan().needing(), Contains("n3"));
  }
  // How many there were is the record's own word: they are not counted one by one.
  input_.records.nodes.resize(3);
  input_.uses.resize(3);
  auto huge = record("n1", kLater);
  stage(huge, "allreduce", Scope::kCluster, 2);
  huge.nodeCount = 2'000'000'000;
  add(huge, RecordUse::kRerun);
  EXPECT_THAT(plan().nodes[0].why, HasSubstr("of its run of 2000000000 nodes 1999999999 records are not"));
}

TEST_F(HistoryDelta, HoldsANodeAgainstItsOwnClock) {
  // n1's clock was 100 years ahead, so the fleet's end is too: of n2 that says nothing.
  of(0).finished = input_.accepted.finished = kAccepted + 3e9;
  add(replaced("n2"), RecordUse::kSurvey);
  Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n2"));
  add(replaced("n2", kLater + 5), RecordUse::kRerun);
  EXPECT_THAT(plan().mismatches, IsEmpty());
  // A scan of n1 seems older than its acceptance. That it shows the same parts tells nothing; other parts do.
  const size_t scan = add(record("n1", kLater), RecordUse::kSurvey);
  delta = plan();
  EXPECT_THAT(delta.needing(), IsEmpty());
  EXPECT_THAT(delta.notTaken, ElementsAre(HasSubstr("before the node's accepted run ended")));
  of(scan).devices[1].serial = "new";
  delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n1"));
  EXPECT_THAT(delta.nodes[0].why, HasSubstr("shows gpu1: n1-gpu1 replaced by new: either a clock was wrong"));
}

TEST_F(HistoryDelta, WantsANodeRunAgainWhoseRunWasInterrupted) {
  fleet::InterruptedRun run;
  run.node = "n2";
  run.path = "again/n2";
  input_.interruptedRuns = {run};
  for (int times = 0; times < 2; ++times) {
    const Delta delta = plan();
    EXPECT_THAT(delta.needing(), ElementsAre("n2"));
    EXPECT_THAT(delta.nodes[1].why, HasSubstr("its run in again/n2 was interrupted"));
    add(replaced("n2"), RecordUse::kRerun);
  }
}

TEST_F(HistoryDelta, WantsANodeRunAgainOfWhichARunLeftNoRecord) {
  input_.unrecorded = {{"n2", "no record (exit 2)"}, {"n2", "another reason"}, {"spare", "no record"}};
  for (int times = 0; times < 2; ++times) {
    const Delta delta = plan();
    EXPECT_THAT(delta.needing(), ElementsAre("n2"));
    EXPECT_EQ(delta.nodes[1].why, "no record (exit 2)");
    EXPECT_THAT(delta.mismatches, IsEmpty());
    add(replaced("n2"), RecordUse::kRerun);
  }
}

TEST_F(HistoryDelta, RefusesARunOfAClockThatIsAhead) {
  add(replaced("n2"), RecordUse::kSurvey);
  const size_t ahead = add(record("n2", kLater + 1e8), RecordUse::kRerun);
  EXPECT_THAT(plan().needing(), IsEmpty());
  input_.latest = kLater + 100;
  for (const RecordUse use : {RecordUse::kSurvey, RecordUse::kRerun}) {
    input_.uses[ahead] = use;
    EXPECT_THAT(plan().mismatches, ElementsAre(HasSubstr("this machine's clock or the node's is wrong")));
    EXPECT_THAT(plan().needing(), ElementsAre("n2"));
  }
}

TEST_F(HistoryDelta, TakesTheNewRecordOfAReplacedNodeAndTheOthersAsTheyWere) {
  const size_t again = add(replaced("n2"), RecordUse::kRerun);
  const Delta delta = plan();
  EXPECT_THAT(delta.mismatches, IsEmpty());
  EXPECT_THAT(delta.needing(), IsEmpty());
  EXPECT_EQ(delta.nodes[1].state, DeltaState::kRerun);
  EXPECT_THAT(delta.nodes[1].records, ElementsAre(again));
  EXPECT_THAT(delta.nodes[0].records, ElementsAre(0));
  EXPECT_THAT(delta.nodes[2].records, ElementsAre(2));
}

TEST_F(HistoryDelta, WantsANodeRunAgainThatChangedAfterItsRun) {
  add(replaced("n2"), RecordUse::kRerun);
  auto later = replaced("n2", kLater + 1000);
  later.devices[0].serial = "newer";
  add(later, RecordUse::kSurvey);
  const Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n2"));
  EXPECT_THAT(delta.nodes[1].why, HasSubstr("changed again after its run"));
}

TEST_F(HistoryDelta, WantsTheNodeRunAgainThatAPartWasTakenFrom) {
  auto moved = record("n2", kLater);
  moved.devices[1].serial = "n3-gpu0";
  add(moved, RecordUse::kRerun);
  Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n3"));
  EXPECT_THAT(delta.nodes[2].why, HasSubstr("its gpu0 (serial n3-gpu0) is now in n2"));
  EXPECT_EQ(delta.nodes[1].parts[0].from, "n3 gpu0");
  // A swap: both were run.
  auto other = record("n3", kLater);
  other.devices[0].serial = "n2-gpu1";
  add(other, RecordUse::kRerun);
  delta = plan();
  EXPECT_THAT(delta.mismatches, IsEmpty());
  EXPECT_THAT(delta.needing(), IsEmpty());
}

TEST_F(HistoryDelta, KnowsThatOnePartIsInOnePlace) {
  add(replaced("n1"), RecordUse::kRerun);
  add(replaced("n2"), RecordUse::kRerun);
  EXPECT_THAT(plan().mismatches, ElementsAre(HasSubstr("part new is in n1 gpu1 and in n2 gpu1")));
}

TEST_F(HistoryDelta, TellsARemovedPartAnAddedOneAndOneInAnotherSlot) {
  auto node = record("n2", kLater);
  node.devices.pop_back();
  const size_t at = add(node, RecordUse::kSurvey);
  EXPECT_EQ(plan().nodes[1].parts[0].text(), "gpu1: n2-gpu1 was removed");
  of(at) = record("n2", kLater);
  of(at).devices.push_back({"gpu2", "gpu", "H100", "", "more", ""});
  EXPECT_EQ(plan().nodes[1].parts[0].text(), "gpu2: more was added");
  of(at) = record("n2", kLater);
  std::swap(of(at).devices[0].serial, of(at).devices[1].serial);
  EXPECT_THAT(plan().nodes[1].parts, SizeIs(2));
  EXPECT_THAT(plan().needing(), ElementsAre("n2"));
}

TEST_F(HistoryDelta, TellsByUuidWhereThereIsNoSerialAndSaysWhereNothingTells) {
  for (size_t i = 0; i < 3; ++i)
    for (auto& device : of(i).devices) {
      device.uuid = "GPU-" + device.serial;
      device.serial = i == 1 ? "" : "0";  // two of one node: no serials
    }
  auto node = record("n2", kLater);
  for (auto& device : node.devices) device.serial.clear();
  node.devices[0].uuid = "GPU-n2-gpu0";
  node.devices[1].uuid = "GPU-other";
  add(node, RecordUse::kSurvey);
  EXPECT_THAT(plan().nodes[1].parts, SizeIs(1));
  auto zeros = record("n3", kLater);
  for (auto& device : zeros.devices) device.serial = "0";
  zeros.devices[0].uuid = of(2).devices[0].uuid;
  zeros.devices[1].uuid = "GPU-third";
  add(zeros, RecordUse::kSurvey);
  ASSERT_THAT(plan().nodes[2].parts, SizeIs(1)) << "\"0\" is the serial of two and names none";
  EXPECT_EQ(plan().nodes[2].parts[0].after, "GPU-third");
  for (auto& device : of(1).devices) device.uuid.clear();
  const Delta delta = plan();
  EXPECT_THAT(delta.notes, ElementsAre(HasSubstr("n2: its devices have neither serial nor UUID")));
}

TEST_F(HistoryDelta, WantsANodeRunAgainWhoseDriverChanged) {
  auto node = record("n3", kLater);
  node.facts.clear();
  fact(node, -1, "software.driver", "590");
  fact(node, -1, "host.load", "12");
  add(node, RecordUse::kSurvey);
  const Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n3"));
  EXPECT_THAT(delta.nodes[2].facts, ElementsAre("driver: 580 -> 590"));
}

TEST_F(HistoryDelta, WantsANodeRunAgainWhoseRecordIsGoneOrWasEdited) {
  of(0).sha256 = sha256Hex("edited");
  Delta delta = plan();
  EXPECT_THAT(delta.needing(), ElementsAre("n1"));
  EXPECT_THAT(delta.nodes[0].why, HasSubstr("n1/record.json"));
  EXPECT_THAT(delta.nodes[0].why, HasSubstr("is missing or was changed"));
  input_.unreadable = {{"/runs/first/n1/record.json", "", "a record of schema 1"}};
  EXPECT_THAT(plan().nodes[0].why, HasSubstr("cannot be read: a record of schema 1"));
  add(record("n1", kLater), RecordUse::kRerun);
  EXPECT_THAT(plan().needing(), IsEmpty());
}

TEST_F(HistoryDelta, TakesNoRecordOfAnotherNodeUnderANodesName) {
  input_.accepted.nodes[0].records[0].sha256 = of(1).sha256;
  EXPECT_THAT(plan().needing(), ElementsAre("n1"));
}

TEST_F(HistoryDelta, RefusesWhatWasMeasuredOtherwise) {
  const size_t at = add(replaced("n2"), RecordUse::kRerun);
  const auto refused = [&](const char* part, auto change) {
    const fleet::NodeSummary good = of(at);
    change(of(at));
    EXPECT_THAT(plan().mismatches, ElementsAre(HasSubstr(part))) << part;
    of(at) = good;
  };
  using Node = fleet::NodeSummary;
  refused("of plan", [](Node& n) { n.planSha256 = "other"; });
  refused("--set \"a.b=1\"", [](Node& n) { n.overrides = {"a.b=1"}; });
  refused("it is simulated", [](Node& n) { n.simulated = true; });
  refused("evaluated with profile", [](Node& n) { n.profileSha256 = "other"; });
  refused("evaluated with profile (none)", [](Node& n) { n.profileSha256 = n.profileName = ""; });
  refused("measured on backend host", [](Node& n) { n.backend = "host"; });
  refused("before the node's accepted run ended", [](Node& n) { n.started = kAccepted + 5; });
  refused("node n9 is not in the accepted fleet", [](Node& n) { n.node = "n9"; });
  EXPECT_THAT(plan().mismatches, IsEmpty());
  of(1).strict = true;
  EXPECT_THAT(plan().mismatches, ElementsAre(HasSubstr("--strict")));
  of(at).strict = true;
  EXPECT_THAT(plan().mismatches, IsEmpty());
  input_.records.quarantined.push_back({"again/n2/record.json", "n2", "torn"});
  EXPECT_THAT(plan().mismatches, ElementsAre(HasSubstr("again/n2/record.json cannot be used: torn")));
}

TEST_F(HistoryDelta, HoldsANodeWithoutItsRecordToAProfileOfTheFleet) {
  of(1).sha256 = "gone";
  auto node = record("n2", kLater);
  node.profileSha256 = "lenient";
  const size_t at = add(node, RecordUse::kRerun);
  EXPECT_THAT(plan().mismatches, ElementsAre(HasSubstr("no node was accepted with it")));
  of(at).profileSha256 = "profile";
  EXPECT_THAT(plan().mismatches, IsEmpty());
}

TEST_F(HistoryDelta, WantsAStageOfSeveralNodesRunWithMoreThanOne) {
  stage(of(1), "allreduce", Scope::kCluster, 3);
  auto node = replaced("n2");
  stage(node, "allreduce", Scope::kCluster, 1);
  const size_t at = add(node, RecordUse::kRerun);
  EXPECT_THAT(plan().mismatches,
              ElementsAre(HasSubstr("stage allreduce met no other node, and 3 nodes when")));
  of(at).stages.back().groupNodes = 2;
  EXPECT_THAT(plan().mismatches, IsEmpty());
}

TEST_F(HistoryDelta, LeavesARunOfSomeStagesOutWhereNothingWasReplacedUnlessItFailed) {
  stage(of(0), "allreduce", Scope::kCluster, 3);
  auto node = record("n1", kLater);
  node.stages.clear();
  stage(node, "gemm", Scope::kDevice);
  const size_t at = add(node, RecordUse::kRerun);
  Delta delta = plan();
  EXPECT_EQ(delta.nodes[0].state, DeltaState::kKept);
  EXPECT_THAT(delta.nodes[0].records, ElementsAre(0));
  EXPECT_THAT(delta.notTaken, ElementsAre(HasSubstr("incomplete run of a node")));
  of(at).acceptance = Acceptance::kRejected;
  delta = plan();
  EXPECT_EQ(delta.nodes[0].state, DeltaState::kRerun);
  EXPECT_THAT(delta.nodes[0].records, ElementsAre(0, at)) << "both: the worse one counts";
  of(at).acceptance = Acceptance::kAccepted;
  of(at).accounting.counts[static_cast<size_t>(Outcome::kDeferred)] = 1;
  EXPECT_THAT(plan().nodes[0].records, ElementsAre(0, at)) << "the fleet may find it slow";
  of(at).accounting = {};
  of(at).stages.clear();
  stage(of(at), "allreduce", Scope::kCluster, 2);
  EXPECT_THAT(plan().nodes[0].records, ElementsAre(0, at)) << "others may name it by its new rank";
  // Of a replaced node what was accepted of the old parts says nothing.
  of(at).devices[0].serial = "new";
  EXPECT_THAT(plan().nodes[0].records, ElementsAre(at));
}

TEST_F(HistoryDelta, NeverHidesThatAnUntouchedNodeFailedNow) {
  auto node = record("n1", kLater);
  node.acceptance = Acceptance::kRejected;
  const size_t at = add(node, RecordUse::kRerun);
  EXPECT_THAT(plan().nodes[0].records, ElementsAre(at));
}

TEST_F(HistoryDelta, NotesAStrangerInASurvey) {
  add(record("n9", kLater), RecordUse::kSurvey);
  const Delta delta = plan();
  EXPECT_THAT(delta.mismatches, IsEmpty());
  EXPECT_THAT(delta.notes, ElementsAre(HasSubstr("n9")));
}

}  // namespace
}  // namespace muster::history
