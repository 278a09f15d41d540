// SPDX-License-Identifier: Apache-2.0
// Generated fleets with one faulty part and its consequences in the records of others: that part is named
// first, no innocent one is flagged or rejected, and nothing is accepted.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <span>

#include "kernels/checks/largest.h"
#include "reports/fleet/blame/culprit.h"
#include "reports/fleet/blame/findings.h"
#include "reports/fleet/read/cause.h"
#include "reports/fleet/render/fleet_terminal.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using fleet::Cause;
using fleet::FindingClass;
using fleet::Fleet;
using fleet::NodeState;
using fleet::SuspectKind;
using ::testing::AnyOf;
using testing::FleetFolder;
using ::testing::HasSubstr;
using testing::nodeOf;
using testing::nodeRecord;
using ::testing::Not;
using testing::settle;
using testing::skipOptional;

constexpr const char* kStage = "all-reduce";

/// Nodes n0, n1, … of eight GPUs with one stage that all run as a group, as `muster run` writes it.
class GroupFleet {
 public:
  explicit GroupFleet(unsigned seed, int nodes = 0)
      : random_(seed), nodes_(nodes > 0 ? nodes : below(9) + 3), ranks_(below(8) + 1), group_(nodes_) {
    for (int node = 0; node < nodes_; ++node) {
      Record record = nodeRecord(nameOf(node));
      record.nodeRank = node;
      record.nodeCount = nodes_;
      record.launcher["fleet_id"] = "together";
      record.stages.resize(2);  // its own tests of single devices: enough to fail by itself
      record.stages.push_back(groupStage(node));
      settle(record);
      records_.push_back(std::move(record));
    }
  }

  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int world() const { return nodes_ * ranks_; }
  [[nodiscard]] static std::string nameOf(int node) { return fmt::format("n{}", node); }
  [[nodiscard]] std::string rankText(int rank) const {
    return fmt::format("rank {} (gpu{} of node {} ({}))", rank, rank % ranks_, rank / ranks_,
                       nameOf(rank / ranks_));
  }
  [[nodiscard]] static std::string nodeText(int node) {
    return fmt::format("node {} ({})", node, nameOf(node));
  }
  /// The second half of the nodes met each other only, as nodes 0, 1, ... of a run of their own.
  void inTwoGroups() {
    group_ = nodes_ / 2;
    for (int node = 0; node < nodes_; ++node) {
      record(node).nodeRank = node % group_;
      record(node).nodeCount = group_;
      record(node).launcher.erase("fleet_id");
      stage(node) = groupStage(node % group_, node - node % group_);
      stage(node).group["id"] = node < group_ ? "first" : "second";
      settle(record(node));
    }
  }
  Record& record(int node) { return records_[static_cast<size_t>(node)]; }
  StageRecord& stage(int node) { return record(node).stages.back(); }

  /// Data of `source` is wrong: all ranks see it, and some can say whose it was.
  void corrupt(int source) {
    for (int rank = 0; rank < world(); ++rank) {
      const bool tells = rank == 0 || rank == source || below(3) > 0;
      StageRecord& at = stage(rank / ranks_);
      Measurement fault;
      fault.metric = "collective.collective_first_fault";
      fault.unit = "text";
      fault.text = fmt::format(
          "rank {}: all_reduce bf16 of 1048576 B, in place: 1 wrong elements, the first at 4096, {}", rank,
          tells ? fmt::format("from rank {}", source) : "from a rank that cannot be told");
      fault.informational = true;
      fault.caseId = kStage;
      fault.rank = rank;
      fault.device = fmt::format("gpu{}", rank % ranks_);
      at.measurements.push_back(fault);
      Verdict& verdict = at.verdicts[static_cast<size_t>(rank % ranks_)];
      verdict.outcome = Outcome::kFail;
      verdict.metric = "collective.collective_wrong_elements";
      verdict.detail = fault.device + ": 1, required at most 0";
    }
    for (int node = 0; node < nodes_; ++node) end(node, Acceptance::kRejected, 1);
  }

  /// The first rank of `node` finds wrong data, which it lays to another.
  void findsWrongDataOf(int node, int source) {
    StageRecord& at = stage(node);
    Measurement fault;
    fault.metric = "collective.collective_first_fault";
    fault.unit = "text";
    fault.text = fmt::format(
        "rank {}: all_gather bf16 of 1048576 B: 1 wrong elements, the first at 4096, from rank {}",
        node % group_ * ranks_, source);
    fault.informational = true;
    fault.caseId = fmt::format("{}-{}", kStage, source);
    fault.rank = node % group_ * ranks_;
    fault.device = "gpu0";
    at.measurements.push_back(fault);
    at.cases.push_back({fault.caseId, Json::object()});
    Verdict verdict = at.verdicts.front();
    verdict.caseId = fault.caseId;
    verdict.outcome = Outcome::kFail;
    verdict.metric = "collective.collective_wrong_elements";
    verdict.detail = "gpu0: 1, required at most 0";
    at.verdicts.push_back(verdict);
    end(node, Acceptance::kRejected, 1);
  }

  /// What node 0 published ends the stage on all nodes but those that wrote no record.
  void endBy(const std::string& culprit, Acceptance acceptance = Acceptance::kIncomplete, int exit = 3,
             int first = 0) {
    for (int node = first; node < nodes_; ++node) {
      stage(node).group["culprit"] = culprit;
      for (int i = 0; i < ranks_; ++i) {
        Verdict& verdict = stage(node).verdicts[static_cast<size_t>(i)];
        verdict.outcome = Outcome::kError;
        verdict.detail = fmt::format(
            "{}; here: rank {} (gpu{}) was stopped because {} in case all-reduce; rerun it alone: "
            "muster-host",
            culprit, verdict.rank, i, culprit);
      }
      end(node, acceptance, exit);
    }
  }

  /// What `node` itself says ended the stage.
  void loses(int node, const std::string& culprit) {
    stage(node).group["culprit"] = culprit;
    for (Verdict& verdict : stage(node).verdicts) verdict.detail = culprit;
  }

  /// Node 0 waited for all others in vain, of whom it knows the names, or only the numbers.
  void meetsNobody(bool named) {
    std::vector<std::string> absent;
    for (int node = 1; node < nodes(); ++node)
      absent.push_back(named ? nodeText(node) : fmt::format("node {}", node));
    didNotBegin(0, fmt::format("{} of {} nodes did not arrive: {}; look at their runs, or start them",
                               absent.size(), nodes(), fmt::join(absent, ", ")));
  }

  /// The stage of `node` ended in an error before it began, as stageNotRun() says it.
  void didNotBegin(int node, const std::string& why) {
    StageRecord& at = stage(node);
    at.state = StageState::kError;
    at.reason = why;
    at.group = Json();
    at.ranks.clear();
    at.cases.clear();
    at.verdicts.resize(1);
    at.verdicts.front() = Verdict();
    at.verdicts.front().stage = kStage;
    at.verdicts.front().outcome = Outcome::kError;
    at.verdicts.front().detail = why;
    end(node, Acceptance::kIncomplete, 3);
  }

  /// A verdict of the ring on another part, in the record of `node`.
  void reports(int node, const std::string& culprit, const std::string& kind) {
    Verdict verdict;
    verdict.outcome = Outcome::kFail;
    verdict.stage = kStage;
    verdict.caseId = kStage;
    verdict.metric = "ring.culprits";
    verdict.device = "gpu0";
    verdict.rank = node * ranks_;
    verdict.labels = {{"culprit", culprit}, {"kind", kind}};
    verdict.observed = 1;
    verdict.limit = 0;
    verdict.margin = std::nan("");
    verdict.detail = fmt::format("gpu0 (culprit={} kind={}): 1, required at most 0", culprit, kind);
    stage(node).verdicts.push_back(verdict);
    end(node, Acceptance::kRejected, 1);
  }

  /// Its first rank is slow in the stage.
  void missesLimit(int node) {
    Verdict& verdict = stage(node).verdicts.front();
    verdict.outcome = Outcome::kFail;
    verdict.metric = "ring.device_bandwidth";
    verdict.detail = "gpu0: 24 GB/s, required at least 40 GB/s";
    end(node, Acceptance::kRejected, 1);
  }

  /// A verdict of a test of pairs in the record of `node`, about its link to another node.
  void reportsPair(int node, const std::string& peer) {
    stage(node).verdicts.push_back(testing::slowLink(stage(node).verdicts.front(), peer));
    end(node, Acceptance::kRejected, 1);
  }

  void end(int node, Acceptance acceptance, int exit) {
    settle(record(node));
    record(node).acceptance = acceptance;
    record(node).exitCode = exit;
    record(node).reasons = {"as its counts say"};
  }

  /// It ran the stage without others.
  void alone(int node) {
    record(node).nodeCount = 1;
    record(node).nodeRank = 0;
    stage(node).group = {{"world_size", ranks_}, {"first_rank", 0}, {"nodes", 1}, {"culprit", ""}};
  }
  /// These met as nodes 0, 1, ... of their run.
  void met(const std::vector<int>& nodes) {
    const auto count = static_cast<int>(nodes.size());
    Json around;
    for (int number = 0; number < count; ++number) {
      const int node = nodes[static_cast<size_t>(number)];
      record(node).nodeRank = number;
      around.push_back(
          {{"node_rank", number}, {"node", nameOf(node)}, {"first_rank", node * ranks_}, {"ranks", ranks_}});
    }
    for (const int node : nodes) {
      record(node).nodeCount = count;
      stage(node).group["nodes"] = count;
      stage(node).group["around"] = around;
    }
  }
  /// The stage as all of them met in it, before anything was found.
  [[nodiscard]] StageRecord stageAsMet(int node) const { return groupStage(node); }
  /// The others met node `node` by another name.
  void calls(int node, const std::string& name) {
    for (int other = 0; other < nodes_; ++other)
      for (Json& around : stage(other).group["around"])
        if (around["node_rank"] == node) around["node"] = name;
  }
  void leaveOut(int node) { leftOut_ = node; }
  /// The others have records, too.
  void expectOnly(std::set<int> nodes) { expected_ = std::move(nodes); }
  /// A further record of a node.
  void addAlso(Record record, const std::string& path) {
    settle(record);
    folder_.add(std::move(record), path);
  }

  /// The record of `liar` lists the first rank of `node`, too.
  void takesRankOf(int liar, int node) {
    RankRecord rank = stage(node).ranks.front();
    rank.device = "gpu7";
    stage(liar).ranks.push_back(rank);
  }

  Fleet assess() { return assess(group_ < nodes_); }
  /// Beside those of its nodes.
  void add(const Record& record, const std::string& path = "") { folder_.add(record, path); }

  Fleet assess(bool manyRuns) {
    fleet::FleetOptions options;
    options.expectedFrom = "nodes.txt";
    options.manyRuns = manyRuns;
    for (int node = 0; node < nodes_; ++node) {
      if (expected_.empty() || expected_.contains(node))
        options.expected.push_back({nameOf(node), "", false});
      if (node != leftOut_) folder_.add(record(node));
    }
    return folder_.assess(options);
  }

  /// No node but these is rejected, incomplete or named by a finding.
  void expectInnocent(const Fleet& fleet, const std::vector<std::string>& guilty) {
    const auto isGuilty = [&](const std::string& name) {
      return std::find(guilty.begin(), guilty.end(), name) != guilty.end();
    };
    for (const auto& node : fleet.nodes) {
      if (isGuilty(node.name)) continue;
      EXPECT_TRUE(node.state == NodeState::kAffected || node.state == NodeState::kAccepted)
          << node.name << " is " << muster::nameOf(node.state) << ": " << node.reason;
      EXPECT_FALSE(node.suspect) << node.name;
      if (node.state == NodeState::kAffected) {
        EXPECT_THAT(node.reason,
                    AnyOf(HasSubstr("not faulty itself"), HasSubstr("cannot be told: affected by group")))
            << node.name;
      }
    }
    for (const auto& suspect : fleet.suspects)
      for (const std::string& name : nodesOf(suspect)) EXPECT_TRUE(isGuilty(name)) << suspect.name();
    EXPECT_NE(fleet.exitCode, 0);
    EXPECT_NE(fleet.acceptance, Acceptance::kAccepted);
    for (const auto& suspect : fleet.suspects) EXPECT_FALSE(suspect.next.empty()) << suspect.name();
  }

  /// What a reader sees first, in both texts.
  void expectFirst(const Fleet& fleet, const std::string& name) {
    ASSERT_FALSE(fleet.suspects.empty());
    EXPECT_EQ(fleet.suspects.front().name(), name);
    const Json json = Json::parse(fleetText(fleet, folder_.records()));
    EXPECT_EQ(json["suspects"][0]["kind"], suspectKindName(fleet.suspects.front().kind));
    const std::string text = renderFleetSummary(fleet, 400);
    const size_t at = text.find("\nFindings");
    ASSERT_NE(at, std::string::npos) << text;
    const size_t urgency = std::string("A ").size();
    EXPECT_EQ(text.find(name, at), text.find("  ", at) + 2 + urgency) << text;
  }

 private:
  /// `first`: of the fleet's nodes, the one that was node 0 of this one's run.
  [[nodiscard]] StageRecord groupStage(int node, int first = 0) const {
    std::vector<std::string> names;
    for (int number = 0; number < group_; ++number) names.push_back(nameOf(first + number));
    return testing::metStage(kStage, names, node, ranks_, "first");
  }

  std::mt19937 random_;
  int nodes_;
  int ranks_;
  int group_;  ///< nodes that met each other
  int leftOut_ = -1;
  std::set<int> expected_;
  std::vector<Record> records_;
  FleetFolder folder_;
};

constexpr unsigned kFleets = 12;  ///< of each kind

TEST(Blame, AWrongSumIsTheRanksWhoseDataItWas) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int source = made.below(made.world());
    made.corrupt(source);
    const Fleet fleet = made.assess();
    const std::string node = GroupFleet::nameOf(source / made.ranks());
    made.expectInnocent(fleet, {node});
    made.expectFirst(fleet, fmt::format("device {} gpu{}", node, source % made.ranks()));
    EXPECT_EQ(fleet.suspects.size(), 1u);
    EXPECT_EQ(fleet.suspects[0].grade, FindingClass::kCorrectness);
    EXPECT_THAT(fleet.suspects[0].evidence[0], HasSubstr(fmt::format("rank {}", source)));
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kRejected);
    EXPECT_EQ(fleet.exitCode, 1);
  }
}

TEST(Blame, AWrongSumOfUnknownSourceIsNotADeviceFault) {
  GroupFleet made(5);
  made.corrupt(0);
  for (int node = 0; node < made.nodes(); ++node)
    for (Measurement& m : made.stage(node).measurements)
      if (m.metric == "collective.collective_first_fault")
        m.text = "rank 1: 1 wrong, from a rank that cannot be told";
  const Fleet fleet = made.assess();
  made.expectInnocent(fleet, {});
  ASSERT_EQ(fleet.suspects.size(), 1u);
  EXPECT_EQ(fleet.suspects[0].kind, SuspectKind::kGroup);
  EXPECT_EQ(fleet.exitCode, 1);
}

/// Who alone says so may have damaged what it received, or made it up; who names several has passed it on.
TEST(Blame, AWrongSumThatOneNodeAloneLaysToAnotherIsNobodysKnownFault) {
  for (const int speaker : {0, 1, 2}) {
    SCOPED_TRACE(speaker);
    GroupFleet made(3);
    for (int other = 0; other < 3; ++other)
      if (other != speaker) made.findsWrongDataOf(speaker, other * made.ranks());
    // ... of which one passed on what it had got from the speaker.
    made.findsWrongDataOf((speaker + 1) % 3, (speaker + 2) % 3 * made.ranks());
    const Fleet fleet = made.assess();
    EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kRejected)], 0u);
    EXPECT_NE(fleet.exitCode, 0);
    // Also of those that found nothing wrong: what a node damages on its way, only others see.
    EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kAccepted)], 0u);
    EXPECT_THAT(nodeOf(fleet, GroupFleet::nameOf(speaker)).reason, HasSubstr("cannot be told"));
  }
}

/// n5 is the third node of its group, and left no record: n2 is the third one of the other group.
TEST(Blame, WhatIsSaidOfANodeIsNotSaidOfTheSameOneOfAnotherGroup) {
  for (const bool lost : {false, true}) {
    GroupFleet made(3, 6);
    made.inTwoGroups();
    made.leaveOut(5);
    if (lost)
      made.endBy("node 2 (n5) was lost: no heartbeat for 10 s", Acceptance::kIncomplete, 3, 3);
    else
      for (const int node : {3, 4}) made.findsWrongDataOf(node, 2 * made.ranks());
    const Fleet fleet = made.assess();
    for (const char* other : {"n0", "n1", "n2"})
      EXPECT_EQ(nodeOf(fleet, other).state, NodeState::kAccepted) << nodeOf(fleet, other).reason;
    for (const char* member : {"n3", "n4"}) EXPECT_EQ(nodeOf(fleet, member).state, NodeState::kAffected);
    EXPECT_THAT(nodeOf(fleet, "n3").reason, HasSubstr(lost ? "affected by node n5" : "cannot be told"));
  }
}

/// Its own device is slow in another stage of all nodes, in which ranks do not wait for each other.
TEST(Blame, ASlowGroupIsNotExplainedByADeviceThatFailedInAnotherStage) {
  for (const bool same : {false, true}) {
    GroupFleet made(3);
    const auto fail = [&](StageRecord& at, const std::string& metric) {
      Verdict verdict = made.stage(0).verdicts.front();
      verdict.stage = at.name;
      verdict.caseId = at.cases.front().id;
      verdict.rank = at.verdicts.front().rank;
      verdict.outcome = Outcome::kFail;
      verdict.metric = metric;
      verdict.detail = "gpu0: 60, required at least 90";
      at.verdicts.push_back(verdict);
    };
    for (int node = 0; node < made.nodes(); ++node) {
      StageRecord burn = made.stage(node);
      burn.name = "burn";
      for (Verdict& verdict : burn.verdicts) verdict.stage = burn.name;
      made.record(node).stages.insert(made.record(node).stages.end() - 1, burn);
      settle(made.record(node));
    }
    made.stage(0).evidence["leader_metrics"] = {"collective.large_message_bus_bandwidth"};
    fail(made.stage(0), "collective.large_message_bus_bandwidth");
    auto& stages = made.record(1).stages;
    fail(same ? stages.back() : stages[stages.size() - 2], "compute.sustained_throughput");
    for (const int node : {0, 1}) made.end(node, Acceptance::kRejected, 1);
    const Fleet fleet = made.assess();
    EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kRejected);
    EXPECT_EQ(nodeOf(fleet, "n2").state, same ? NodeState::kAccepted : NodeState::kAffected);
  }
}

/// Any rank may have told node 0 what makes that no number. What node 0 leaves out is its own fault.
TEST(Blame, AGroupsMetricThatIsNoNumberIsNotLaidToTheNodeThatReportsIt) {
  for (const bool measured : {true, false}) {
    GroupFleet made(3);
    StageRecord& at = made.stage(0);
    Verdict verdict = at.verdicts.front();
    verdict.outcome = Outcome::kError;
    verdict.metric = "train.throughput";
    verdict.detail = measured ? "no valid measurement: 1 of 1 samples are NaN or infinite"
                              : "no measurement for train.throughput";
    at.verdicts.push_back(verdict);
    at.evidence["leader_metrics"] = {verdict.metric};
    Measurement throughput;
    throughput.metric = verdict.metric;
    throughput.unit = "samples/s";
    throughput.samples = {std::nan("")};
    throughput.caseId = verdict.caseId;
    throughput.rank = verdict.rank;
    throughput.device = verdict.device;
    if (measured) at.measurements.push_back(throughput);
    made.end(0, Acceptance::kIncomplete, 3);
    const Fleet fleet = made.assess();
    EXPECT_EQ(nodeOf(fleet, "n0").state, measured ? NodeState::kAffected : NodeState::kIncomplete);
    EXPECT_THAT(nodeOf(fleet, "n0").reason,
                HasSubstr(measured ? "cannot be told: affected by group" : "error"));
    EXPECT_EQ(fleet.exitCode, 3);
  }
}

/// A node that fails by itself is not why data arrived wrong, nor why its group was slow.
TEST(Blame, AGroupThatFailedIsNotExplainedByAnotherFailureOfAMember) {
  GroupFleet made(3);
  made.findsWrongDataOf(0, 1 * made.ranks());
  for (Measurement& m : made.stage(0).measurements)
    if (m.metric == "collective.collective_first_fault")
      m.text = "rank 0: 1 wrong, from a rank that cannot be told";
  Verdict own = made.stage(2).verdicts.front();
  own.outcome = Outcome::kFail;
  own.metric = "env.steal_share";
  own.detail = "10%, required at most 5%";
  made.stage(2).verdicts.push_back(own);
  made.end(2, Acceptance::kRejected, 1);
  const Fleet fleet = made.assess();
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kRejected);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAffected);
  EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kAccepted)], 0u);
}

TEST(Blame, WhoCannotTellWhoseDataWereWrongDoesNotTakeItsOwnForThemOnOneNodesWord) {
  GroupFleet made(3);
  made.findsWrongDataOf(0, 1 * made.ranks());
  made.findsWrongDataOf(1, 2 * made.ranks());
  for (Measurement& m : made.stage(1).measurements)
    if (m.metric == "collective.collective_first_fault")
      m.text = "rank 1: 1 wrong, from a rank that cannot be told";
  EXPECT_EQ(nodeOf(made.assess(), "n1").state, NodeState::kAffected);
}

TEST(Blame, ARankThatDiedIsNamedAndNotThoseThatWaitedForIt) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int dead = made.below(made.world());
    made.endBy(made.rankText(dead) + " was killed by SIGSEGV (Segmentation fault)");
    const Fleet fleet = made.assess();
    const std::string node = GroupFleet::nameOf(dead / made.ranks());
    made.expectInnocent(fleet, {node});
    made.expectFirst(fleet, fmt::format("device {} gpu{}", node, dead % made.ranks()));
    EXPECT_EQ(fleet.suspects.size(), 1u);
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kIncomplete);
    EXPECT_EQ(fleet.exitCode, 3);
  }
}

TEST(Blame, ALostNodeIsNamedAndNoDeviceOfTheSurvivors) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int lost = 1 + made.below(made.nodes() - 1);
    made.endBy(GroupFleet::nodeText(lost) + " was lost: no heartbeat for 12 s");
    made.leaveOut(lost);
    const Fleet fleet = made.assess();
    made.expectInnocent(fleet, {GroupFleet::nameOf(lost)});
    made.expectFirst(fleet, "node " + GroupFleet::nameOf(lost));
    EXPECT_EQ(fleet.suspects.size(), 1u);
    EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(lost)).state, NodeState::kMissing);
    EXPECT_EQ(fleet.exitCode, 3);
  }
}

/// It called itself "n2.x" while node 2 was there as n2.
TEST(Blame, ALostNodeTakesNoOtherRanksName) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int lost = 1 + made.below(made.nodes() - 1);
    const int other = lost == 1 ? 2 : 1;
    made.endBy(
        fmt::format("node {} ({}.x) was lost: no heartbeat for 12 s", lost, GroupFleet::nameOf(other)));
    made.leaveOut(lost);
    const Fleet fleet = made.assess();
    made.expectInnocent(fleet, {GroupFleet::nameOf(lost)});
    made.expectFirst(fleet, fmt::format("node {}", lost));
    EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(lost)).state, NodeState::kMissing);
  }
}

TEST(Blame, WhoLostNodeZeroIsNotNamedForIt) {
  GroupFleet made(2);
  made.endBy("");
  for (int node = 1; node < made.nodes(); ++node) {
    const std::string me = GroupFleet::nodeText(node);
    made.loses(node,
               fmt::format("{} lost {}, which serves the store: no answer for 12 s ({})", me,
                           GroupFleet::nodeText(0),
                           node % 2 == 0 ? "no error was reported"
                                         : me + " could not reach the store (10.0.0.1:29400: no answer in "
                                                "time) within 1 s"));
  }
  made.leaveOut(0);
  const Fleet fleet = made.assess();
  made.expectInnocent(fleet, {"n0"});
  made.expectFirst(fleet, "node n0");
}

/// The others have ended their runs by then: they arrived at its first start, and not at the second.
TEST(Blame, ANodeZeroThatWasStartedAgainIsNotBelievedThatTheOthersDidNotArrive) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const bool noticed = made.below(2) == 0;
    made.endBy("");
    for (int node = 1; node < made.nodes(); ++node) {
      made.loses(node,
                 fmt::format("{} lost {}, which {}", GroupFleet::nodeText(node), GroupFleet::nodeText(0),
                             noticed ? "was started again in the middle of this stage"
                                     : "serves the store: no answer for 12 s (no error was reported)"));
    }
    made.record(0).resumed = 1;
    made.meetsNobody(true);
    const Fleet fleet = made.assess();
    made.expectInnocent(fleet, {"n0"});
    made.expectFirst(fleet, "node n0");
    EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kIncomplete);
  }
}

TEST(Blame, ANodeZeroThatWasStartedAgainAfterTheOthersHadFinishedNamesNoneOfThem) {
  GroupFleet made(1);
  made.record(0).resumed = 1;
  made.meetsNobody(true);
  const Fleet fleet = made.assess();
  made.expectInnocent(fleet, {"n0"});
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kIncomplete);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted);
}

TEST(Blame, ANodeZeroThatNobodyReachedIsNotBelievedThatAllOthersDidNotArrive) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    for (int node = 1; node < made.nodes(); ++node) {
      made.didNotBegin(node,
                       fmt::format("node 0 did not answer at 10.0.0.1:29400 within 20 s: {} could not reach "
                                   "the store (10.0.0.1:29400: no answer in time) within 1 s",
                                   GroupFleet::nodeText(node)));
    }
    made.meetsNobody(false);
    const Fleet fleet = made.assess();
    made.expectInnocent(fleet, {"n0"});
    made.expectFirst(fleet, "node n0");
    EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kIncomplete);
  }
}

/// One of them cannot reach node 0, and all others can.
TEST(Blame, ANodeThatDidNotArriveAloneIsNotBelievedThatNodeZeroDidNotAnswer) {
  GroupFleet made(4);
  const int cut = made.nodes() - 1;
  for (int node = 0; node < cut; ++node)
    made.didNotBegin(node,
                     fmt::format("1 of {} nodes did not arrive: node {}; look at their runs, or start them",
                                 made.nodes(), cut));
  made.didNotBegin(cut, "node 0 did not answer at 10.0.0.1:29400 within 20 s: no answer in time");
  const Fleet fleet = made.assess();
  made.expectInnocent(fleet, {GroupFleet::nameOf(cut)});
  made.expectFirst(fleet, "node " + GroupFleet::nameOf(cut));
}

TEST(Blame, ANodeThatDidNotArriveWhenAllWereStartedAgainIsNamed) {
  GroupFleet made(3);
  const std::string absent =
      fmt::format("1 of {} nodes did not arrive: {}; look at their runs, or start them", made.nodes(),
                  GroupFleet::nodeText(1));
  for (int node = 0; node < made.nodes(); ++node) {
    made.record(node).resumed = 1;
    made.didNotBegin(node, absent);
  }
  made.didNotBegin(
      1, fmt::format("{} lost {}, which serves the store: no answer for 12 s (no error was reported)",
                     GroupFleet::nodeText(1), GroupFleet::nodeText(0)));
  const Fleet fleet = made.assess();
  made.expectInnocent(fleet, {"n1"});
  made.expectFirst(fleet, "node n1");
}

TEST(Blame, ATextSpeaksOnceAgainstANodeThatItNamesManyTimes) {
  std::vector<std::string> seen;
  for (const int times : {1, 33}) {
    GroupFleet made(3);
    std::string named = GroupFleet::nodeText(1);
    for (int i = 1; i < times; ++i) named += ", node 1";
    made.didNotBegin(0, fmt::format("1 of {} nodes did not arrive: {}; look at their runs, or start them",
                                    made.nodes(), named));
    const Fleet fleet = made.assess();
    made.expectFirst(fleet, "node n1");
    ASSERT_EQ(fleet.suspects.front().beneath.size(), 1u);
    seen.push_back(fleet.suspects.front().beneath.front());
  }
  EXPECT_THAT(seen[0], HasSubstr("seen in "));
  EXPECT_EQ(seen[1], seen[0]);
}

TEST(Blame, NodesThatSayThatTheyWereStoppedAreBelievedBeforeNodeZeroThatLostThemAll) {
  GroupFleet made(3);
  made.endBy("");
  made.loses(0, GroupFleet::nodeText(0) +
                    " lost every other node: its own link is at fault, or the network as a whole");
  for (int node : {1, 2})
    made.loses(node,
               GroupFleet::nodeText(node) +
                   " did not run for 8 s: it was stopped or got no CPU time, so the others declared it lost");
  const Fleet fleet = made.assess();
  made.expectInnocent(fleet, {"n1", "n2"});
  for (const char* node : {"n1", "n2"}) EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kIncomplete);
}

/// Nodes of several runs of the same size, each with a rank of its own: no two of them met.
TEST(Blame, NodesThatNeverMetAreNoFleetAndANoteWithManyRuns) {
  for (const bool apart : {false, true})
    for (const bool manyRuns : {false, true}) {
      GroupFleet made(4);
      for (int node = 0; node < made.nodes(); ++node)
        if (apart) {
          made.stage(node).group["id"] = fmt::format("{:016}", node);
          made.stage(node).group.erase("around");  // whom it met is not expected here
        }
      const Fleet fleet = made.assess(manyRuns);
      const auto told = Contains(HasSubstr("these nodes met each other only: n0 | n1 | "));
      EXPECT_EQ(fleet.exitCode, apart && !manyRuns ? 3 : 0);
      EXPECT_EQ(fleet.reasons.empty(), !apart || manyRuns);
      EXPECT_EQ(::testing::Matches(told)(fleet.reasons), apart && !manyRuns);
      EXPECT_EQ(::testing::Matches(told)(fleet.notes), apart && manyRuns);
    }
}

/// What a group measured together, and who was idle beside it, is a note as well.
TEST(Blame, AGroupWithoutTheRecordOfItsFirstNodeIsANoteWithManyRuns) {
  for (const bool manyRuns : {false, true}) {
    GroupFleet made(4);
    made.leaveOut(0);
    const Fleet fleet = made.assess(manyRuns);
    EXPECT_THAT(manyRuns ? fleet.notes : fleet.reasons, Contains(HasSubstr("no record of its first node")));
  }
}

/// Nobody is convicted because the other end of its link left no usable record.
TEST(Blame, ALinkToANodeWithoutARecordRejectsNotTheEndThatReportsIt) {
  GroupFleet made(4);
  made.reportsPair(1, "2");
  made.leaveOut(2);
  const Fleet fleet = made.assess();
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAffected) << nodeOf(fleet, "n1").reason;
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kMissing);
}

/// What the group says of a node reaches it whatever number of nodes, or number of its own, its record gives.
TEST(Blame, ANodeThatGivesAnotherRunSizeOrRankEscapesNothingAndConvictsNobody) {
  for (const bool size : {true, false}) {
    GroupFleet made(4);
    made.endBy(made.rankText(2 * made.ranks()) + " was killed by SIGKILL");
    if (size)
      made.record(2).nodeCount = made.nodes() + 1;
    else
      made.record(2).nodeRank = 3;
    const Fleet fleet = made.assess();
    EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kIncomplete) << size;
    for (const char* node : {"n0", "n1"}) EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAffected) << node;
    EXPECT_NE(nodeOf(fleet, "n3").state, NodeState::kRejected);
    ASSERT_FALSE(fleet.findings.empty());
    EXPECT_THAT(
        fleet.findings.front().text,
        HasSubstr(size ? fmt::format("had {} nodes, and those of most say {}", made.nodes() + 1, made.nodes())
                       : "n2 says that it was node 3 of the run, and most of the others that it was n3"));
  }
}

/// A retry has the same ranks, and may have fewer nodes; within one run nobody shares a rank.
TEST(Blame, ARankThatIsClaimedTwiceIsAnErrorWithinOneRunOnly) {
  struct Case {
    const char* what;
    void (*change)(GroupFleet& made);  ///< n0 to n2 are a run of three nodes, the others one of as many
    int errors;
  };
  const Case cases[] = {
      {"two runs", [](GroupFleet&) {}, 0},
      {"a rank of its own run", [](GroupFleet& made) { made.record(3).nodeRank = 1; }, 1},
      {"a rank of the run that it met", [](GroupFleet& made) { made.stage(3).group["id"] = "first"; }, 1},
      {"it ran and does not say with whom: nodes 1 of both runs share its number, and it stands alone",
       [](GroupFleet& made) {
         made.record(3).nodeRank = 1;
         made.stage(3).group.erase("id");
       },
       1},
      {"another size than its run", [](GroupFleet& made) { made.record(3).nodeCount = 4; }, 1},
      {"a larger run",
       [](GroupFleet& made) {
         for (const int node : {3, 4, 5}) made.record(node).nodeCount = 4;
       },
       0},
      {"a first attempt in which it met nobody",
       [](GroupFleet& made) { made.didNotBegin(3, "2 of 3 nodes did not arrive: node 1, node 2"); }, 0},
      {"two that met nobody, each of which others met in another run",
       [](GroupFleet& made) {
         for (const int node : {0, 3}) made.didNotBegin(node, "2 of 3 nodes did not arrive: node 1, node 2");
       },
       0},
      {"two that met nobody, perhaps in one attempt",
       [](GroupFleet& made) {
         for (const int node : {1, 2, 4, 5}) made.stage(node).group.erase("around");
         for (const int node : {0, 3}) made.didNotBegin(node, "2 of 3 nodes did not arrive: node 1, node 2");
       },
       1}};
  for (const Case& each : cases) {
    GroupFleet made(3, 6);
    made.inTwoGroups();
    each.change(made);
    const Fleet fleet = made.assess(false);
    EXPECT_EQ(std::count_if(fleet.findings.begin(), fleet.findings.end(),
                            [](const auto& finding) {
                              return finding.text.find(" say that they were node ") != std::string::npos ||
                                     finding.text.find(" says that it was node ") != std::string::npos ||
                                     finding.text.find(" in the run were its own") != std::string::npos ||
                                     finding.text.find(" says that its run had ") != std::string::npos;
                            }),
              each.errors)
        << each.what;
  }
}

TEST(Blame, WhoListsTheRanksOfOthersHidesNoFaultOfTheirs) {
  for (const bool several : {false, true}) {
    GroupFleet made(3, 6);
    made.corrupt(0);
    made.takesRankOf(5, 0);
    if (several) made.takesRankOf(5, 1);
    const Fleet fleet = made.assess();
    EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kRejected) << several;
    for (const char* node : {"n1", "n2", "n3", "n4"})
      EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAffected) << node;
    EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kIncomplete);
    EXPECT_EQ(std::count_if(fleet.suspects.begin(), fleet.suspects.end(),
                            [](const auto& suspect) { return suspect.name() == "device n0 gpu0"; }),
              1);
    ASSERT_EQ(fleet.findings.size(), 1u);
    EXPECT_EQ(
        fleet.findings.front().text,
        "n5 says that rank 0 of stage all-reduce was its own, and most of the others that it was one of n0");
  }
}

/// Whichever of two records that claim one number counts, an end of a failed link is not accepted.
TEST(Blame, ARecordOfAnotherRunTakesNoOtherNodesNumber) {
  struct Case {
    bool liarCounts, victimCounts;
  };
  for (const auto& [liarCounts, victimCounts] : {Case{false, true}, {false, false}, {true, false}}) {
    GroupFleet made(3, 5);
    for (int node = 0; node < made.nodes(); ++node) made.stage(node).group["id"] = "first";
    made.reportsPair(2, "1");
    Record lie = made.record(4);
    lie.nodeRank = 1;
    lie.started -= 3600;
    if (liarCounts) {
      made.record(4).nodeRank = 1;
    } else {
      made.addAlso(lie, "old");
      made.stage(4).group["id"] = "other";
    }
    if (!victimCounts) {
      Record repeated = made.record(1);
      repeated.started -= 3600;
      made.addAlso(repeated, "old1");
      made.stage(1).group["id"] = "third";
    }
    const Fleet fleet = made.assess(true);
    for (const char* end : {"n1", "n2"})
      EXPECT_NE(nodeOf(fleet, end).state, NodeState::kAccepted) << end << liarCounts << victimCounts;
    EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kAffected);
    EXPECT_EQ(fleet.exitCode, 1);
  }
}

TEST(Blame, WhoClaimsNumbersOrRanksOfSeveralStandsAlone) {
  GroupFleet made(3, 6);
  made.record(5).nodeRank = 1;
  made.takesRankOf(5, 2);
  const Fleet fleet = made.assess();
  for (const char* node : {"n0", "n1", "n2", "n3", "n4"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
  EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kIncomplete);
  ASSERT_EQ(fleet.findings.size(), 2u);
  EXPECT_EQ(fleet.findings[0].text,
            "n5 says that it was node 1 of the run, and most of the others that it was n1");
  EXPECT_THAT(fleet.findings[1].text, HasSubstr("n5 says that rank"));
}

/// A node that writes another group's id than it met is not out of reach of what the others found.
TEST(Blame, WhoAloneSaysItMetAGroupEscapesNothing) {
  for (const bool pair : {false, true})
    for (const bool manyRuns : {false, true}) {
      GroupFleet made(3, 6);
      for (int node = 0; node < made.nodes(); ++node)
        made.stage(node).group["id"] = node == 4 ? "other" : "first";
      if (pair)
        made.reportsPair(2, "4");
      else
        made.reports(0, "node n4", "node");
      const Fleet fleet = made.assess(manyRuns);
      EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kIncomplete) << nodeOf(fleet, "n4").reason;
      EXPECT_EQ(nodeOf(fleet, pair ? "n2" : "n0").state, NodeState::kAffected);
      for (const char* node : {"n1", "n3", "n5"})
        EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
      EXPECT_EQ(fleet.exitCode, 1);
    }
}

/// Its record of the run in which it was found is gone, after a repair or because it says it was in another.
TEST(Blame, WhoNamesANodeThatItsGroupLacksIsNotRejectedForIt) {
  for (const bool manyRuns : {false, true}) {
    GroupFleet made(3, 6);
    for (int node = 0; node < made.nodes(); ++node) {
      made.stage(node).group["id"] = "second";
      if (node == 4) continue;
      Record later = made.record(node);
      later.started += 1;
      made.addAlso(later, "later" + GroupFleet::nameOf(node));
      made.stage(node).group["id"] = "first";
    }
    made.reports(0, "node n4", "node");
    const Fleet fleet = made.assess(manyRuns);
    EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAffected) << nodeOf(fleet, "n0").reason;
    EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kIncomplete) << nodeOf(fleet, "n4").reason;
    for (const char* node : {"n1", "n2", "n3", "n5"})
      EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
    EXPECT_EQ(fleet.exitCode, 1);
  }
}

/// Whoever claims the seat of a lost node, in its group's run or in one that it invents.
TEST(Blame, WhoNamesALostNodeIsNotRejectedWhoeverTakesItsSeat) {
  GroupFleet made(3, 6);
  made.inTwoGroups();
  made.leaveOut(2);
  made.stage(5).group["id"] = "first";  // as node 2 of three, which n2 was
  made.reports(0, "node n2", "node");
  const Fleet fleet = made.assess(true);
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAffected) << nodeOf(fleet, "n0").reason;
  made.expectFirst(fleet, "node n2");
}

TEST(Blame, WhatNodeZeroSaysIsNotSaidByAnother) {
  GroupFleet made(3, 7);
  for (int node = 0; node < made.nodes(); ++node)
    made.stage(node).group["id"] = node == 6 ? "other" : "first";
  for (const int node : {0, 3}) made.record(node).nodeCount = 6;
  made.loses(0, "node 5 (n6) was lost");
  made.reports(3, "link n3 - n5", "link");
  made.leaveOut(5);
  EXPECT_NE(nodeOf(made.assess(true), "n3").state, NodeState::kRejected);
}

TEST(Blame, AGroupThatOneRecordInventsReachesNoRunThatLacksNobody) {
  for (const bool byText : {false, true}) {
    GroupFleet made(3, 6);
    for (int node = 0; node < made.nodes(); ++node) made.stage(node).group["id"] = "first";
    StageRecord& lie = made.stage(5);
    lie.group["id"] = "own";
    made.record(5).nodeRank = 0;
    if (byText) {
      // Its error names nobody, but what it published as node 0 does.
      lie.group["culprit"] = "node 1 (n0), node 2 (n1), node 3 (n2), node 4 (n3) were lost";
      Verdict& verdict = lie.verdicts.front();
      verdict.outcome = Outcome::kError;
      verdict.detail = fmt::format("rank {} was stopped because node 9 (zz) was lost", verdict.rank);
      made.end(5, Acceptance::kIncomplete, 3);
    } else {
      made.record(5).nodeCount = 300;
      for (const char* node : {"n0", "n1", "n2", "n3", "n4"})
        made.reports(5, std::string("node ") + node, "node");
    }
    const Fleet fleet = made.assess(true);
    for (const char* node : {"n0", "n1", "n2", "n3", "n4"})
      EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
    EXPECT_NE(nodeOf(fleet, "n5").state, NodeState::kAccepted);
  }
}

/// Who tells of the group otherwise than the others is in it all the same.
TEST(Blame, WhoTellsOfAStageOrItsGroupOtherwiseEscapesNothing) {
  struct Lie {
    const char* what;
    void (*tell)(Record& record, StageRecord& stage);
  };
  const Lie lies[] = {
      {"fewer ranks", [](Record&, StageRecord& stage) { stage.group["world_size"] = 1; }},
      {"a stage of its own", [](Record&, StageRecord& stage) { stage.scope = Scope::kNode; }},
      {"fewer nodes in the group", [](Record&, StageRecord& stage) { stage.group["nodes"] = 5; }},
      {"a group of its own", [](Record&, StageRecord& stage) { stage.group["nodes"] = 1; }},
      {"a run of its own",
       [](Record& record, StageRecord&) {
         record.nodeCount = 1;
         record.nodeRank = 0;
       }},
      {"a run of its own, whole",
       [](Record& record, StageRecord& stage) {
         record.nodeCount = 1;
         record.nodeRank = 0;
         stage.group["nodes"] = 1;
         stage.group.erase("id");
       }},
      {"no group", [](Record&, StageRecord& stage) { stage.group.erase("id"); }},
      {"no part in it", [](Record&, StageRecord& stage) { skipOptional(stage); }},
      {"no part in it, and a run of its own",
       [](Record& record, StageRecord& stage) {
         skipOptional(stage);
         record.nodeCount = 1;
         record.nodeRank = 0;
       }},
      {"no part in it, and a larger run",
       [](Record& record, StageRecord& stage) {
         skipOptional(stage);
         record.nodeCount = 7;
       }},
      {"no part in it, and another's number",
       [](Record& record, StageRecord& stage) {
         skipOptional(stage);
         record.nodeRank = 0;
       }},
  };
  for (const Lie& lie : lies)
    for (const bool pairs : {false, true})
      for (const int nodes : {2, 6}) {
        SCOPED_TRACE(fmt::format("{}, {} of {} nodes", lie.what, pairs ? "pairs" : "wrong data", nodes));
        const int liar = nodes - 1;
        GroupFleet made(3, nodes);
        for (int node = 0; node < nodes; ++node) made.stage(node).group["id"] = "first";
        for (int node = 0; node < liar && node < 3; ++node)
          if (pairs)
            made.reportsPair(node, std::to_string(liar));
          else
            made.findsWrongDataOf(node, liar * made.ranks());
        lie.tell(made.record(liar), made.stage(liar));
        settle(made.record(liar));
        const Fleet fleet = made.assess(false);
        EXPECT_NE(nodeOf(fleet, GroupFleet::nameOf(liar)).state, NodeState::kAccepted);
        EXPECT_FALSE(fleet.findings.empty());
        for (int node = 0; node < liar; ++node)
          EXPECT_NE(nodeOf(fleet, GroupFleet::nameOf(node)).state, NodeState::kRejected)
              << nodeOf(fleet, GroupFleet::nameOf(node)).reason;
        for (int node = 1; node < liar; ++node) {
          const auto& honest = nodeOf(fleet, GroupFleet::nameOf(node));
          EXPECT_NE(honest.state, NodeState::kIncomplete) << honest.reason;
        }
      }
}

/// Among many runs too, and with a partner whom nobody expects.
TEST(Blame, WhoLeavesTheRunForAnotherOneEscapesNothing) {
  for (const bool manyRuns : {false, true})
    for (const bool withStranger : {false, true}) {
      GroupFleet made(3, 6);
      for (int node = 0; node < 6; ++node) made.stage(node).group["id"] = "first";
      for (int node = 0; node < 3; ++node) made.reportsPair(node, "5");
      made.record(5).nodeRank = 1;
      made.record(5).nodeCount = 2;
      if (withStranger)
        made.stage(5).group["id"] = "second";
      else
        skipOptional(made.stage(5));
      settle(made.record(5));
      if (withStranger) {
        Record stranger = made.record(5);
        stranger.node = "zzz";
        stranger.runId.clear();
        stranger.nodeRank = 0;
        testing::giveParts(stranger, "zzz");
        made.add(stranger);
      }
      const Fleet fleet = made.assess(manyRuns);
      EXPECT_NE(nodeOf(fleet, "n5").state, NodeState::kAccepted) << manyRuns << withStranger;
      for (const char* node : {"n0", "n2", "n3", "n4"})
        EXPECT_NE(nodeOf(fleet, node).state, NodeState::kIncomplete)
            << manyRuns << withStranger << nodeOf(fleet, node).reason;
    }
}

/// The others waited for one that ran alone, and nothing was measured by anybody.
TEST(Blame, WhoDidNotArriveAndRanAloneIsInQuestion) {
  for (const int absent : {0, 2})
    for (const bool manyRuns : {false, true}) {
      GroupFleet made(3, 4);
      for (int node = 0; node < 4; ++node) {
        StageRecord& stage = made.stage(node);
        stage.required = false;
        if (node == absent) {
          skipOptional(stage);
          stage.state = StageState::kRan;
          made.record(node).nodeCount = 1;
          made.record(node).nodeRank = 0;
          settle(made.record(node));
          continue;
        }
        stage.state = StageState::kError;
        stage.group = Json();
        stage.ranks.clear();
        stage.measurements.clear();
        Verdict error;
        error.outcome = Outcome::kError;
        error.detail = fmt::format("node {} (1 of 4 nodes did not arrive)", absent);
        stage.verdicts = {error};
        made.end(node, Acceptance::kIncomplete, 3);
      }
      const Fleet fleet = made.assess(manyRuns);
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(absent)).state, NodeState::kIncomplete);
    }
}

/// Its place was taken by one that is no longer expected: the run lacks nobody.
TEST(Blame, WhoReplacedAMemberOfAFailedRunIsNotInQuestion) {
  GroupFleet made(3, 6);
  for (int node = 0; node < 6; ++node) made.stage(node).group["id"] = "first";
  made.reportsPair(0, "2");
  Record former = made.record(5);
  former.node = "former";
  former.runId.clear();
  testing::giveParts(former, "former");
  settle(former);
  made.add(former);
  made.calls(5, "former");
  skipOptional(made.stage(5));
  made.record(5).nodeCount = 1;
  made.record(5).nodeRank = 0;
  settle(made.record(5));
  EXPECT_EQ(nodeOf(made.assess(true), "n5").state, NodeState::kAccepted);
}

/// Nor by its record of an earlier run, in which the others were as well.
TEST(Blame, WhoShowsAnEarlierRunEscapesNothingOfTheLater) {
  for (const bool manyRuns : {false, true})
    for (const bool redated : {false, true}) {
      GroupFleet made(3, 6);
      for (int node = 0; node < 6; ++node) {
        Record earlier = made.record(node);
        earlier.stages.back().group["id"] = "earlier";
        if (node < 5 || !redated)
          for (double* time : {&earlier.started, &earlier.finished}) *time -= 3600;
        made.stage(node).group["id"] = "later";
        if (node < 5)
          made.add(earlier, fmt::format("earlier/n{}", node));
        else
          made.record(node) = earlier;
      }
      for (int node = 0; node < 3; ++node) made.reportsPair(node, "5");
      const Fleet fleet = made.assess(manyRuns);
      EXPECT_NE(nodeOf(fleet, "n5").state, NodeState::kAccepted) << manyRuns << redated;
      for (const char* node : {"n0", "n1", "n2", "n3", "n4"})
        EXPECT_NE(nodeOf(fleet, node).state, NodeState::kRejected) << nodeOf(fleet, node).reason;
    }
}

/// Whatever it shows instead of its record of a run, those who met it there name it.
TEST(Blame, WhoLeavesARunIsNamedByThoseWhoMetIt) {
  struct Way {
    const char* what;
    void (*leave)(GroupFleet& made, int node, const Record& earlier);
  };
  const Way ways[] = {
      {"an earlier run of more nodes",
       [](GroupFleet& made, int node, const Record& earlier) { made.record(node) = earlier; }},
      {"that one, dated later",
       [](GroupFleet& made, int node, const Record& earlier) {
         const double later = made.record(node).started + 60;
         made.record(node) = earlier;
         made.record(node).started = later;
         made.record(node).finished = later + 60;
       }},
      {"a run alone", [](GroupFleet& made, int node, const Record&) { made.alone(node); }},
      {"a group of its own",
       [](GroupFleet& made, int node, const Record&) { made.stage(node).group["id"] = "own"; }},
      {"a skip", [](GroupFleet& made, int node, const Record&) { skipOptional(made.stage(node)); }},
      {"a job without that stage",
       [](GroupFleet& made, int node, const Record&) {
         testing::leaveElsewhere(made.record(node), kStage);
         made.stage(node).group = Json();
         made.stage(node).ranks.clear();
       }},
      {"a skip alone",
       [](GroupFleet& made, int node, const Record&) {
         made.alone(node);
         skipOptional(made.stage(node));
       }},
  };
  for (const int nodes : {2, 3, 6, 12})
    for (const Way& way : ways)
      for (const bool manyRuns : {false, true})
        for (const bool fails : {false, true}) {
          SCOPED_TRACE(
              fmt::format("{} of {} nodes, many runs: {}, fails: {}", way.what, nodes, manyRuns, fails));
          const int leaver = nodes - 1, companion = nodes;
          GroupFleet made(3, nodes + 1);
          std::vector<int> members;
          for (int node = 0; node < nodes; ++node) members.push_back(node);
          std::vector<Record> earlier;
          for (int node = 0; node <= nodes; ++node) {
            earlier.push_back(made.record(node));
            for (double* time : {&earlier.back().started, &earlier.back().finished}) *time -= 3600;
            made.stage(node).group["id"] = "later";
          }
          made.met(members);
          for (const int node : members) made.record(node).finished += node % 3;
          if (fails) made.reportsPair(0, std::to_string(leaver));
          made.record(companion) = earlier.back();
          for (const int node : members)
            if (node != leaver) made.add(earlier[static_cast<size_t>(node)], fmt::format("earlier/{}", node));
          way.leave(made, leaver, earlier[static_cast<size_t>(leaver)]);
          settle(made.record(leaver));
          const Fleet fleet = made.assess(manyRuns);
          const auto& left = nodeOf(fleet, GroupFleet::nameOf(leaver));
          EXPECT_NE(left.state, NodeState::kAccepted);
          for (const int node : members) {
            const auto& one = nodeOf(fleet, GroupFleet::nameOf(node));
            EXPECT_NE(one.state, NodeState::kRejected) << one.name << ": " << one.reason;
            // Of two nobody can tell which one lies.
            if (node == leaver || nodes == 2) continue;
            EXPECT_NE(one.state, NodeState::kIncomplete) << one.name << ": " << one.reason;
          }
        }
}

/// Its record of the failed run was moved away, as it has to be.
TEST(Blame, WhoMetOthersAgainAfterARepairIsNotAskedForTheRunBefore) {
  GroupFleet made(3, 6);
  made.reportsPair(0, "5");
  const Record before = made.record(4);
  made.met({4, 5});
  for (const int node : {4, 5}) {
    made.stage(node).group["id"] = "second";
    made.record(node).started += 3600;
    made.record(node).finished += 3600;
    settle(made.record(node));
  }
  made.add(before, "before/n4");
  const Fleet fleet = made.assess(true);
  for (const char* node : {"n1", "n2", "n3", "n4", "n5"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
}

/// The last one's partner was tested again with another one, which replaced its record.
TEST(Blame, WhoWasTestedWithOneThatWasTestedAgainIsNotAskedForTheRunBefore) {
  GroupFleet made(3, 5);
  const Record before = made.record(4);
  const auto meetAgain = [&](std::vector<int> nodes, const char* run, double later) {
    made.met(nodes);
    for (const int node : nodes) {
      made.stage(node).group["id"] = run;
      made.record(node).started += later;
      made.record(node).finished += later;
      settle(made.record(node));
    }
  };
  meetAgain({2, 3}, "second", 3600);
  meetAgain({2, 4}, "third", 7200);
  made.add(before, "before/n4");
  const Fleet fleet = made.assess(true);
  for (const char* node : {"n0", "n1", "n2", "n3", "n4"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
}

/// Each node has one voice about when a run began, however many records it has.
TEST(Blame, WhoDatesARunAnewMakesNobodyAnswerForIt) {
  for (const int nodes : {3, 6})
    for (const int copies : {0, 12}) {
      GroupFleet made(3, nodes);
      const int repaired = nodes - 1, liar = 1;
      std::vector<Record> again;
      for (int node = 0; node < nodes; ++node) {
        Record record = made.record(node);
        record.stages.back().group["id"] = "second";
        record.started += 3600;
        record.finished += 3600;
        if (node == repaired)
          made.record(node) = record;
        else
          made.add(record, fmt::format("again/n{}", node));
      }
      for (int copy = 0; copy <= copies; ++copy) {
        Record late = made.record(liar);
        late.started += 7200 + copy;
        late.finished += 7200 + copy;
        if (copy == copies)
          made.record(liar) = late;
        else
          made.add(late, fmt::format("late/{}", copy));
      }
      const Fleet fleet = made.assess(true);
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(repaired)).state, NodeState::kAccepted)
          << nodeOf(fleet, GroupFleet::nameOf(repaired)).reason;
    }
}

/// Its record tells no group: it may be of any run.
TEST(Blame, WhoTellsNoGroupTakesNoNumberThatOthersGiveToAnother) {
  for (const bool manyRuns : {false, true}) {
    GroupFleet made(3, 6);
    made.stage(5).group.erase("id");
    made.stage(5).group.erase("around");
    made.record(5).nodeRank = 2;
    const Fleet fleet = made.assess(manyRuns);
    for (const char* node : {"n0", "n1", "n2", "n3", "n4"})
      EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
    EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kIncomplete);
  }
}

/// What the others report of the one whose number it takes still is about that one.
TEST(Blame, WhoTakesTheNumberOfOneThatLeftIsNoMemberForIt) {
  GroupFleet made(3, 5);
  made.met({0, 1, 2, 3});
  made.reports(0, "node n3", "node");
  Record lie = made.record(3);
  Record own = made.record(4);
  lie.node = own.node;
  lie.inventory = own.inventory;
  lie.runId = own.runId;
  made.alone(3);
  made.record(4) = lie;
  const Fleet fleet = made.assess(true);
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAffected) << nodeOf(fleet, "n0").reason;
  for (const char* node : {"n3", "n4"}) EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kIncomplete) << node;
}

/// Each of its failed records is of a run that it invents, with a fault of another node.
TEST(Blame, WhoInventsManyFailedRunsNamesOneNodeAtMost) {
  for (const bool manyRuns : {false, true}) {
    GroupFleet made(3, 9);
    const Record own = made.record(8);
    for (int node = 0; node < 8; ++node) {
      made.record(8) = own;
      made.met({8, node});
      made.record(node).nodeRank = node;
      made.record(node).nodeCount = 9;
      made.stage(node) = made.stageAsMet(node);
      made.stage(8).group["id"] = fmt::format("invented{}", node);
      made.stage(8).group.erase("around");
      made.reports(8, "node " + GroupFleet::nameOf(node), "node");
      made.add(made.record(8), fmt::format("invented/{}", node));
    }
    made.record(8) = own;
    const Fleet fleet = made.assess(manyRuns);
    int notAccepted = 0;
    for (int node = 0; node < 8; ++node)
      notAccepted += nodeOf(fleet, GroupFleet::nameOf(node)).state == NodeState::kAccepted ? 0 : 1;
    EXPECT_LE(notAccepted, 1);
    EXPECT_NE(nodeOf(fleet, "n8").state, NodeState::kAccepted);
  }
}

/// Pairs of n5 and each of the others, by whose records it was there, and by its own only in the first.
TEST(Blame, WhoContradictsSeveralOneByOneIsItAlone) {
  for (const bool joins : {false, true}) {
    GroupFleet made(3, 6);
    const Record own = made.record(5);
    for (int node = 0; node < 5; ++node) {
      made.met({node, 5});
      made.stage(node).group["id"] = fmt::format("pair{}", node);
      made.record(node).finished += 10 * node;
      if (!joins) continue;
      // It says that three were there.
      Record lie = own;
      lie.nodeRank = 1;
      lie.nodeCount = 3;
      lie.stages.back() = made.stage(node);
      lie.stages.back().group["nodes"] = 3;
      lie.stages.back().group.erase("around");
      made.add(lie, fmt::format("lie/{}", node));
    }
    made.stage(5).group["id"] = "pair0";
    made.record(5).nodeRank = 1;
    const Fleet fleet = made.assess(true);
    for (const char* node : {"n0", "n1", "n2", "n3", "n4"})
      EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted)
          << node << joins << ": " << nodeOf(fleet, node).reason;
    EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kIncomplete);
  }
}

/// However many report it: one of their links fails on most nodes, and has this end in common.
TEST(Blame, WhoseLinksFailToAllIsNoFaultOfTheFleet) {
  for (int reporters = 2; reporters < 6; ++reporters) {
    GroupFleet made(3, 6);
    for (int node = 0; node < reporters; ++node) made.reportsPair(node, "5");
    const Fleet fleet = made.assess(false);
    EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kRejected) << reporters;
    for (int node = 0; node < reporters; ++node)
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(node)).state, NodeState::kAffected) << node;
  }
}

/// Of a network whose links fail here and there some end at one node.
TEST(Blame, TwoLinksOfANodeAreChanceWhereSingleOnesFail) {
  for (const int single : {0, 1, 2, 3, 4}) {
    GroupFleet made(3, 16);
    made.reportsPair(0, "1");
    made.reportsPair(2, "1");
    for (int link = 0; link < single; ++link) made.reportsPair(4 + 3 * link, std::to_string(5 + 3 * link));
    const Fleet fleet = made.assess(false);
    SCOPED_TRACE(single);
    EXPECT_EQ(nodeOf(fleet, "n1").state, single < 3 ? NodeState::kRejected : NodeState::kAffected);
    for (const char* node : {"n0", "n2"}) EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAffected);
    EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  }
}

/// Single links that it invents itself do not excuse it.
TEST(Blame, TwoLinksOfANodeAreNoChanceByItsOwnWord) {
  GroupFleet made(3, 12);
  for (const int node : {1, 2}) made.reportsPair(node, "0");
  for (const char* link : {"link n3 - n4", "link n5 - n6", "link n7 - n8"}) made.reports(0, link, "link");
  const Fleet fleet = made.assess(false);
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kRejected) << nodeOf(fleet, "n0").reason;
}

/// A run that was resumed has begun long before: which one was later their ends tell.
TEST(Blame, WhichRunWasLaterTheirEndsTell) {
  for (const bool later : {false, true}) {
    GroupFleet made(3, 6);
    for (const int node : {0, 1}) made.reportsPair(node, "5");
    for (int node = 0; node < 6; ++node) {
      Record other = made.record(node);
      other.stages.back() = made.stageAsMet(node);
      other.stages.back().group["id"] = "second";
      other.acceptance = Acceptance::kAccepted;
      settle(other);
      // The first one began last, and ended last unless `later`.
      made.record(node).started += 3600;
      made.record(node).finished += 7200;
      other.finished += later ? 10800 : 3600;
      if (node == 5)
        made.record(node) = other;
      else
        made.add(other, fmt::format("second/n{}", node));
    }
    const Fleet fleet = made.assess(true);
    EXPECT_EQ(nodeOf(fleet, "n5").state, later ? NodeState::kAccepted : NodeState::kIncomplete)
        << later << ": " << nodeOf(fleet, "n5").reason;
  }
}

/// Its own record of that run passed, and does not count: it was only a part of the plan.
TEST(Blame, WhatARunOfAPartOfThePlanFoundIsOfTheNodeThatItMetUntilOthersMetItAgain) {
  for (const bool again : {false, true}) {
    GroupFleet made(3, 4);
    for (const int node : {0, 1}) {
      const Record whole = made.record(node);
      made.record(node).selection.stages = {kStage};
      StageRecord left = made.stageAsMet(node);
      left.name = kSelectionStage;
      left.scope = Scope::kNode;
      skipOptional(left);
      made.record(node).stages.insert(made.record(node).stages.begin(), left);
      made.record(node).started += 3600;
      made.record(node).finished += 3600;
      made.stage(node).group["id"] = "part";
      made.reportsPair(node, "3");
      made.add(made.record(node), fmt::format("part/n{}", node));
      made.record(node) = whole;
    }
    for (int node = 0; again && node < 4; ++node) {
      Record later = made.record(node);
      later.stages.back().group["id"] = "again";
      later.started += 7200;
      later.finished += 7200;
      made.add(later, fmt::format("again/n{}", node));
    }
    const Fleet fleet = made.assess(true);
    EXPECT_EQ(nodeOf(fleet, "n3").state, again ? NodeState::kAccepted : NodeState::kRejected)
        << nodeOf(fleet, "n3").reason;
    EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kAccepted) << nodeOf(fleet, "n2").reason;
  }
}

/// What each node reaches with others is limited by it; but one node's word excuses nobody.
TEST(Blame, ASlowRailIsNoFaultOfTheNodesOnIt) {
  for (int speakers = 1; speakers <= 6; ++speakers) {
    GroupFleet made(3, 6);
    for (int node = 0; node < 6; ++node) {
      if (node < speakers) made.reports(node, "rail 6", "rail");
      if (node < 5) made.missesLimit(node);
    }
    const Fleet fleet = made.assess(false);
    SCOPED_TRACE(speakers);
    for (int node = 0; node < 6; ++node) {
      const auto& known = nodeOf(fleet, GroupFleet::nameOf(node));
      EXPECT_EQ(known.state, speakers > 3
                                 ? node < 5 || speakers > 5 ? NodeState::kAffected : NodeState::kAccepted
                             : node < 5 ? NodeState::kRejected
                                        : NodeState::kAccepted)
          << known.name << ": " << known.reason;
      if (known.state == NodeState::kAffected) {
        EXPECT_THAT(known.reason, HasSubstr("affected by rail 6"));
      }
    }
    if (speakers > 3) {
      made.expectFirst(fleet, "rail 6");
      EXPECT_EQ(fleet.incidents.front().part, "rail 6");
    }
    EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  }
}

/// All others skip the stage in which one does not take part, and tell the truth about it.
TEST(Blame, WhoDoesNotTakePartInAStageIsKnownToThoseThatSkipItForThat) {
  for (const char* why :
       {"the run was interrupted (SIGINT) before it", "prerequisite stage gpu did not pass (fail)"})
    for (const bool required : {true, false})
      for (const bool lies : {false, true})
        for (const int number : {1, 3}) {
          if (number == 3 && !lies) continue;
          GroupFleet made(3, 4);
          const Record clean = made.record(1);
          for (int node = 0; node < 4; ++node) {
            StageRecord& stage = made.stage(node);
            stage.state = StageState::kSkipped;
            stage.reason = node == 1 ? why : std::string("node 1 (n1) does not take part: ") + why;
            stage.group = Json();
            stage.ranks.clear();
            stage.cases.clear();
            stage.verdicts.resize(1);
            Verdict& verdict = stage.verdicts.front();
            verdict = Verdict();
            verdict.stage = kStage;
            verdict.outcome = Outcome::kSkipped;
            verdict.required = required;
            verdict.detail = stage.reason;
            made.end(node, required || node == 1 ? Acceptance::kIncomplete : Acceptance::kAccepted,
                     required || node == 1 ? 3 : 0);
          }
          if (lies) {
            made.record(1) = clean;
            made.stage(1).group["id"] = "invented";
            made.record(1).nodeRank = number;
          }
          const Fleet fleet = made.assess(false);
          SCOPED_TRACE(fmt::format("{} {} {} {}", why, required, lies, number));
          EXPECT_NE(nodeOf(fleet, "n1").state, NodeState::kAccepted);
          for (const char* node : {"n0", "n2"})
            EXPECT_EQ(nodeOf(fleet, node).state, required ? NodeState::kAffected : NodeState::kAccepted)
                << nodeOf(fleet, node).reason;
          if (!lies) {
            EXPECT_TRUE(fleet.findings.empty()) << fleet.findings.front().text;
          }
        }
}

/// Node 0 was interrupted before the stage, and resumed when the runs of the others had ended.
TEST(Blame, WhoDidNotArriveAtANodeZeroThatCameTooLateIsNotNamed) {
  for (const bool required : {true, false}) {
    GroupFleet made(3, 5);
    for (int node = 1; node < 5; ++node) {
      StageRecord& stage = made.stage(node);
      testing::skipOptional(stage);
      stage.reason = "node 0 (n0) does not take part: the run was interrupted (SIGINT) before it";
      stage.required = stage.verdicts.front().required = required;
      stage.verdicts.front().detail = stage.reason;
      made.end(node, required ? Acceptance::kIncomplete : Acceptance::kAccepted, required ? 3 : 0);
    }
    made.didNotBegin(0, "4 of 5 nodes did not arrive: node 1 (n1), node 2 (n2), node 3 (n3), node 4 (n4)");
    made.record(0).resumed = 1;
    const Fleet fleet = made.assess(false);
    EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kIncomplete) << nodeOf(fleet, "n0").reason;
    for (int node = 1; node < 5; ++node)
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(node)).state,
                required ? NodeState::kAffected : NodeState::kAccepted)
          << nodeOf(fleet, GroupFleet::nameOf(node)).reason;
  }
}

/// It was interrupted before an optional stage, and resumed when the others had gone on without it.
TEST(Blame, WhoSaysThatItWasInterruptedBeforeAStageAgreesWithTheOthers) {
  for (const bool fails : {false, true}) {
    GroupFleet made(3, 4);
    for (int node = 0; node < 4; ++node) {
      testing::skipOptional(made.stage(node));
      made.stage(node).reason = fmt::format("node 1 (n1) does not take part: {}",
                                            fails ? "prerequisite stage gpu did not pass (fail)"
                                                  : "the run was interrupted (SIGTERM) before it");
      for (Verdict& verdict : made.stage(node).verdicts) verdict.detail = made.stage(node).reason;
      made.end(node, Acceptance::kAccepted, 0);
    }
    const Fleet fleet = made.assess(false);
    EXPECT_EQ(nodeOf(fleet, "n1").state, fails ? NodeState::kIncomplete : NodeState::kAccepted);
  }
}

/// A transfer that failed between two nodes is of neither one alone, and of no GPU.
TEST(Blame, WhatKeptAPairFromBeingMeasuredIsItsLink) {
  GroupFleet made(3, 5);
  for (const auto& [node, peer] : {std::pair{2, 3}, {3, 4}}) {
    Verdict& verdict = made.stage(node).verdicts.front();
    verdict.outcome = Outcome::kError;
    verdict.detail = fmt::format("{}: with node {}: mlx5_3/1: cannot connect", verdict.device, peer);
    made.end(node, Acceptance::kIncomplete, 3);
  }
  const Fleet fleet = made.assess(false);
  for (const auto& suspect : fleet.suspects)
    EXPECT_EQ(suspect.kind, fleet::SuspectKind::kLink) << suspect.what;
  EXPECT_EQ(fleet.suspects.size(), 2u);
}

/// Where hardware lacks it is well, and so say all.
TEST(Blame, WhoSkipsAnOptionalStageForLackOfHardwareIsAccepted) {
  GroupFleet made(3, 4);
  for (int node = 0; node < 4; ++node) {
    StageRecord& stage = made.stage(node);
    const std::string why = "prerequisite stage disk did not pass (skipped)";
    testing::skipOptional(stage);
    stage.reason = node == 1 ? why : "node 1 (n1) does not take part: " + why;
    for (Verdict& verdict : stage.verdicts) verdict.detail = stage.reason;
    made.end(node, Acceptance::kAccepted, 0);
  }
  const Fleet fleet = made.assess(false);
  EXPECT_TRUE(fleet.findings.empty()) << fleet.findings.front().text;
  for (const auto& node : fleet.nodes) EXPECT_EQ(node.state, NodeState::kAccepted) << node.reason;
}

/// In another run one calls itself n1, and cannot take part there: that is not the n1 that others met.
TEST(Blame, WhoCallsItselfAsANodeOfAnotherRunCannotHaveThatOneBlamed) {
  for (const bool manyRuns : {true, false})
    for (const bool leavesARecord : {true, false}) {
      GroupFleet made(3, 6);
      made.inTwoGroups();
      for (int node = 3; node < 6; ++node) {
        testing::skipOptional(made.stage(node));
        made.stage(node).reason =
            "node 1 (n1) does not take part: prerequisite stage gpu did not pass (fail)";
        for (Verdict& verdict : made.stage(node).verdicts) verdict.detail = made.stage(node).reason;
        made.end(node, Acceptance::kAccepted, 0);
      }
      if (!leavesARecord) made.leaveOut(4);
      const Fleet fleet = made.assess(manyRuns);
      for (const char* node : {"n0", "n1", "n2", "n3", "n5"})
        if (manyRuns) {
          EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
        }
      EXPECT_NE(nodeOf(fleet, "n4").state, NodeState::kAccepted);
      for (const auto& finding : fleet.findings)
        EXPECT_THAT(finding.text, Not(HasSubstr("n1 is accepted by its own record")));
    }
}

TEST(Blame, WhoCallsItselfAsNobodyDoesIsKnownByItsNumber) {
  GroupFleet made(3, 4);
  for (int node = 0; node < 4; ++node) {
    testing::skipOptional(made.stage(node));
    made.stage(node).reason =
        "node 1 (elsewhere) does not take part: prerequisite stage gpu did not pass (fail)";
    for (Verdict& verdict : made.stage(node).verdicts) verdict.detail = made.stage(node).reason;
    made.end(node, Acceptance::kAccepted, 0);
  }
  const Fleet fleet = made.assess(false);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kIncomplete);
  for (const char* node : {"n0", "n2", "n3"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
}

/// Where nobody else can have been meant, it left out what it came to later.
TEST(Blame, WhoKeepsTheRecordOfAnEarlierRunIsStillTheOneThatCouldNotTakePart) {
  GroupFleet made(3, 6);
  made.inTwoGroups();
  for (const int node : {0, 2}) {
    made.add(made.record(node), "earlier-" + GroupFleet::nameOf(node));
    StageRecord& stage = made.stage(node);
    testing::skipOptional(stage);
    stage.reason = "node 1 (n1) does not take part: prerequisite stage gpu did not pass (fail)";
    for (Verdict& verdict : stage.verdicts) verdict.detail = stage.reason;
    made.record(node).started += 1000;
    made.record(node).finished += 1000;
    made.end(node, Acceptance::kAccepted, 0);
  }
  const Fleet fleet = made.assess(true);
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kIncomplete);
  for (const char* node : {"n0", "n2", "n3", "n4", "n5"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
}

/// Nor by several records of invented groups, each of which lacks another number.
TEST(Blame, WhoCouldNotTakePartInventsNoRunsForTheOthers) {
  GroupFleet made(3, 4);
  const Record clean = made.record(1);
  for (int node = 0; node < 4; ++node) {
    StageRecord& stage = made.stage(node);
    testing::skipOptional(stage);
    stage.reason = "node 1 (n1) does not take part: prerequisite stage gpu did not pass (fail)";
    for (Verdict& verdict : stage.verdicts) verdict.detail = stage.reason;
    made.end(node, Acceptance::kAccepted, 0);
  }
  const Record skips = made.record(1);
  int copies = 0;
  for (const int lacks : {0, 2, 3})
    for (const int number : {0, 2, 3}) {
      if (number == lacks) continue;
      Record record = clean;
      record.nodeRank = number;
      record.started -= 100.0 * ++copies;
      record.stages.back().group["id"] = fmt::format("without{}", lacks);
      made.add(record, fmt::format("n1/{}", copies));
    }
  made.record(1) = skips;
  made.stage(1).reason = "no RDMA device";
  const Fleet fleet = made.assess(false);
  EXPECT_NE(nodeOf(fleet, "n1").state, NodeState::kAccepted);
  EXPECT_NE(fleet.acceptance, Acceptance::kAccepted);
}

/// ... nor one that claims the number of another, where the group did not form.
TEST(Blame, WhoDidNotArriveEscapesByNoNumber) {
  for (const int number : {1, 3}) {
    GroupFleet made(3, 5);
    const Record clean = made.record(1);
    for (const int node : {0, 2, 3, 4})
      made.didNotBegin(node, "1 of 5 nodes did not arrive: node 1; look at their runs, or start them");
    made.record(1) = clean;
    made.stage(1).group["id"] = "invented";
    made.record(1).nodeRank = number;
    const Fleet fleet = made.assess(false);
    EXPECT_NE(nodeOf(fleet, "n1").state, NodeState::kAccepted) << number;
  }
}

TEST(Blame, WhoAloneReportsASlowRailIsAtFault) {
  for (const int reporter : {0, 3}) {
    GroupFleet made(3, 6);
    made.reports(reporter, "rail 6", "rail");
    const Fleet fleet = made.assess(false);
    for (int node = 0; node < 6; ++node)
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(node)).state,
                node == reporter ? NodeState::kRejected : NodeState::kAccepted)
          << node;
  }
}

/// It explains no other failure: wrong data, a rank that made no progress, the figure of another rail.
TEST(Blame, ASlowRailHidesNoOtherFailureOfItsStage) {
  struct Case {
    const char* metric;
    Outcome outcome;
    const char* rail;
    bool isLimited;
  };
  for (const Case& each : {Case{"ring.device_bandwidth", Outcome::kFail, "", true},
                           {"ring.bandwidth", Outcome::kFail, "6", true},
                           {"ring.bandwidth", Outcome::kFail, "5", false},
                           {"env.ecc_uncorrected", Outcome::kFail, "", false},
                           {"ring.device_bandwidth", Outcome::kError, "", false},
                           {"memory.bandwidth", Outcome::kFail, "", false}}) {
    GroupFleet made(3, 6);
    for (int node = 0; node < 6; ++node) made.reports(node, "rail 6", "rail");
    made.missesLimit(5);
    Verdict& verdict = made.stage(5).verdicts.front();
    verdict.metric = each.metric;
    verdict.outcome = each.outcome;
    if (*each.rail != 0) verdict.labels["rail"] = each.rail;
    made.end(5, Acceptance::kRejected, 1);
    const Fleet fleet = made.assess(false);
    SCOPED_TRACE(fmt::format("{} {}", each.metric, each.rail));
    EXPECT_EQ(nodeOf(fleet, "n5").state, each.isLimited                    ? NodeState::kAffected
                                         : each.outcome == Outcome::kError ? NodeState::kIncomplete
                                                                           : NodeState::kRejected)
        << nodeOf(fleet, "n5").reason;
    const bool named = std::any_of(fleet.suspects.begin(), fleet.suspects.end(),
                                   [](const auto& suspect) { return suspect.node == "n5"; });
    EXPECT_EQ(named, !each.isLimited);
  }
}

/// Others met there later, but not with it.
TEST(Blame, WhoSaysThatItWasInALaterRunOfOthersIsStillAskedForTheRunBefore) {
  GroupFleet made(3, 6);
  for (const int node : {0, 1}) made.reportsPair(node, "5");
  std::vector<Record> before;
  for (int node = 0; node < 5; ++node) before.push_back(made.record(node));
  made.met({2, 3, 4});
  made.met({5});
  for (const int node : {2, 3, 4, 5}) {
    made.record(node).nodeCount = node == 5 ? 4 : 3;
    made.record(node).nodeRank = node - 2;
    made.stage(node).group["id"] = "second";
    made.record(node).started += 3600;
    made.record(node).finished += 3600;
    settle(made.record(node));
  }
  for (const int node : {2, 3, 4})
    made.add(before[static_cast<size_t>(node)], fmt::format("before/n{}", node));
  const Fleet fleet = made.assess(true);
  EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kIncomplete) << nodeOf(fleet, "n5").reason;
  EXPECT_THAT(nodeOf(fleet, "n5").reason, HasSubstr("no record of n5 tells of stage all-reduce"));
}

/// Whom it says that it met, or who it says was which number.
TEST(Blame, WhoNamesOthersThanMostSpeaksForNobody) {
  for (const int nodes : {3, 6}) {
    GroupFleet made(3, nodes);
    Json& around = made.stage(nodes - 1).group["around"];
    around[0]["node"] = "n1";
    around[1]["node"] = "n0";
    const Fleet fleet = made.assess(false);
    EXPECT_EQ(fleet.exitCode, 0) << join(fleet.reasons, "; ");
  }
}

/// It and the one that it names contradict each other, unless the others met it elsewhere.
TEST(Blame, WhoAloneNamesAGroupSpeaksOfOneNodeAtMost) {
  for (const int others : {1, 2})
    for (const bool wasThere : {false, true}) {
      GroupFleet made(3, 6);
      std::vector<int> members{0, 1, 2, 3, 4};
      if (wasThere) members.push_back(5);
      made.met(members);
      Json around = {{{"node_rank", 0}, {"node", "n5"}, {"first_rank", 0}, {"ranks", 1}}};
      for (int other = 1; other <= others; ++other)
        around.push_back(
            {{"node_rank", other}, {"node", GroupFleet::nameOf(other)}, {"first_rank", other}, {"ranks", 1}});
      made.record(5).nodeRank = 0;
      made.record(5).nodeCount = others + 1;
      made.record(5).started += 3600;
      made.stage(5).group["id"] = "own";
      made.stage(5).group["nodes"] = others + 1;
      made.stage(5).group["around"] = around;
      const Fleet fleet = made.assess(true);
      EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kIncomplete);
      for (const char* node : {"n0", "n1", "n2", "n3", "n4"}) {
        const bool either = others == 1 && !wasThere && node == std::string("n1");
        EXPECT_EQ(nodeOf(fleet, node).state, either ? NodeState::kIncomplete : NodeState::kAccepted)
            << node << " " << others << wasThere << ": " << nodeOf(fleet, node).reason;
      }
    }
}

/// One record that ran it, or failed to enter it, says nothing of those who skipped it together.
TEST(Blame, WhoAloneWasInAnOptionalStageSpeaksForNobodyElse) {
  for (const StageState state : {StageState::kRan, StageState::kError})
    for (const int only : {0, 2})
      for (const bool manyRuns : {false, true}) {
        GroupFleet made(3, 5);
        for (int node = 0; node < 5; ++node)
          if (node != only) {
            skipOptional(made.stage(node));
            settle(made.record(node));
          }
        made.stage(only).group["id"] = "first";
        made.reportsPair(only, only == 0 ? "1" : "0");
        made.stage(only).state = state;
        settle(made.record(only));
        const Fleet fleet = made.assess(manyRuns);
        for (int node = 0; node < 5; ++node) {
          const auto& one = nodeOf(fleet, GroupFleet::nameOf(node));
          if (node != only) {
            EXPECT_NE(one.state, NodeState::kIncomplete) << node << ": " << one.reason;
          }
        }
      }
}

/// Alone, they had no partner for it: it is optional, and nothing was measured that others could lack. In the
/// same case their own ports may have passed.
TEST(Blame, AnOptionalStageWhoseCasesWereSkippedWasNotRunAlone) {
  for (const bool measured : {false, true}) {
    GroupFleet made(3, 3);
    for (int node = 0; node < 3; ++node) {
      StageRecord& stage = made.stage(node);
      if (!measured) {
        Verdict skipped;
        skipped.outcome = Outcome::kSkipped;
        skipped.required = false;
        skipped.caseId = stage.verdicts.front().caseId;
        stage.verdicts.push_back(skipped);
      }
      stage.required = false;
      made.alone(node);
      settle(made.record(node));
    }
    const Fleet fleet = made.assess(false);
    EXPECT_EQ(fleet.acceptance == Acceptance::kAccepted, !measured) << join(fleet.reasons, "; ");
  }
}

/// A text or a label: neither counts as node 0's where another one is node 0 as well.
TEST(Blame, WhoClaimsToBeNodeZeroSpeaksForNobody) {
  for (const bool text : {false, true})
    for (const bool manyRuns : {false, true}) {
      GroupFleet made(3, 6);
      for (int node = 0; node < made.nodes(); ++node) made.stage(node).group["id"] = "first";
      made.record(5).nodeRank = 0;
      if (text) {
        made.loses(5, "node 1 (n1), node 2 (n2), node 3 (n3), node 4 (n4) were lost");
        made.stage(5).verdicts.front().outcome = Outcome::kError;
        made.end(5, Acceptance::kIncomplete, 3);
      } else {
        for (const char* node : {"n1", "n2", "n3", "n4"})
          made.reports(5, std::string("node ") + node, "node");
      }
      const Fleet fleet = made.assess(manyRuns);
      for (const char* node : {"n1", "n2", "n3", "n4"})
        EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
      EXPECT_NE(nodeOf(fleet, "n5").state, NodeState::kAccepted);
    }
}

/// Nor is the true one rejected for what it reports of others.
TEST(Blame, NodeZeroIsNotRejectedBecauseAnotherClaimsToBeIt) {
  GroupFleet made(3, 6);
  for (int node = 0; node < made.nodes(); ++node) made.stage(node).group["id"] = "first";
  made.reports(0, "node n5", "node");
  made.record(5).nodeRank = 0;
  const Fleet fleet = made.assess(false);
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAffected) << nodeOf(fleet, "n0").reason;
  EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kIncomplete) << nodeOf(fleet, "n5").reason;
}

/// One that was absent cannot say that node 0 was started again, where most were there.
TEST(Blame, WhoWasAbsentDoesNotLayItToNodeZero) {
  for (const int nodes : {3, 4, 6}) {
    GroupFleet made(3, nodes);
    const int absent = nodes - 1;
    made.endBy("");
    for (int node = 0; node < absent; ++node) {
      made.didNotBegin(node, fmt::format("1 of {} nodes did not arrive: {}; look at its run, or start it",
                                         nodes, GroupFleet::nodeText(absent)));
      made.record(node).resumed = 1;
    }
    made.stage(absent) = GroupFleet(3, nodes).stage(absent);
    made.end(absent, Acceptance::kAccepted, 0);
    made.record(absent).reasons.clear();
    const Fleet fleet = made.assess();
    const auto& liar = nodeOf(fleet, GroupFleet::nameOf(absent));
    EXPECT_NE(liar.state, NodeState::kAccepted) << nodes << liar.reason;
    EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAffected) << nodes << nodeOf(fleet, "n1").reason;
  }
}

/// Who was alone, or says so, and one that met others of whom nobody has a record.
TEST(Blame, OneThatMetOthersSetsNobodyAsideThatRanAlone) {
  GroupFleet made(3, 6);
  for (int node = 0; node < 5; ++node) made.alone(node);
  made.stage(5).group["id"] = "own";
  const Fleet fleet = made.assess(true);
  for (const char* node : {"n0", "n1", "n2", "n3", "n4"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
  EXPECT_EQ(nodeOf(fleet, "n5").state, NodeState::kIncomplete);
}

/// What one says of node 0, or of itself, is believed of that node alone.
TEST(Blame, WhoCorrectsNodeZeroNamesNobodyElse) {
  const std::string all = "node 0 (n0), node 1 (n1), node 2 (n2), node 3 (n3) were lost";
  for (const bool lost : {false, true}) {
    GroupFleet made(3, 6);
    made.endBy("");
    if (lost)
      made.loses(0, GroupFleet::nodeText(0) +
                        " lost every other node: its own link is at fault, or the network as a whole");
    else
      made.loses(0, "1 of 6 nodes did not arrive: node 5 (n5); look at its run, or start it");
    for (int node = 1; node < 5; ++node) {
      made.loses(node, made.stage(0).group["culprit"]);
      made.record(node).resumed = 1;
    }
    made.record(0).resumed = 1;
    made.loses(5, lost ? all + ", node 5 (n5) was stopped" : all);
    const Fleet fleet = made.assess();
    for (const char* node : {"n1", "n2", "n3", "n4"})
      EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAffected) << nodeOf(fleet, node).reason;
  }
}

/// A node that is slow as a whole, though within its limits, keeps what else is said of it.
TEST(Blame, AnOutlierHidesNothingThatWasReported) {
  fleet::FleetNodes nodes(1);
  nodes[0].name = "n5";
  nodes[0].devices = 8;
  fleet::Suspect whole;
  whole.kind = SuspectKind::kNode;
  whole.node = "n5";
  whole.byPeers = true;
  whole.grade = FindingClass::kOutlier;
  whole.stages = {kStage};
  fleet::Suspect rail = whole;
  rail.kind = SuspectKind::kRail;
  rail.byPeers = false;
  rail.grade = FindingClass::kLimit;
  rail.contested = rail.unmeasured = true;
  std::vector<fleet::Suspect> beside = {whole, rail}, alone;
  for (const char* port : {"rail 0", "rail 1", "rail 2", "rail 3", "rail 4"}) {
    alone.push_back(rail);
    alone.back().what = port;
  }
  for (std::vector<fleet::Suspect>* all : {&beside, &alone}) {
    *all = fleet::foldSlowNodes(std::move(*all), nodes);
    ASSERT_EQ(all->size(), 1u);
    EXPECT_TRUE(all->front().unmeasured);
  }
}

TEST(Blame, OneNodesWordIsHearsayWithoutNodeZeroToo) {
  GroupFleet made(3, 6);
  made.leaveOut(0);
  made.loses(5, "node 1 (n1), node 2 (n2), node 3 (n3), node 4 (n4) were lost");
  made.stage(5).verdicts.front().outcome = Outcome::kError;
  made.end(5, Acceptance::kIncomplete, 3);
  const Fleet fleet = made.assess();
  for (const char* node : {"n1", "n2", "n3", "n4"}) {
    EXPECT_NE(nodeOf(fleet, node).state, NodeState::kIncomplete) << nodeOf(fleet, node).reason;
    EXPECT_FALSE(nodeOf(fleet, node).suspect) << node;
  }
}

TEST(Blame, WhoClaimsTheNumberOfAnotherIsIncompleteAmongManyRunsToo) {
  GroupFleet made(3, 6);
  for (int node = 0; node < made.nodes(); ++node) made.stage(node).group["id"] = "first";
  made.record(4).nodeRank = 1;
  for (const int node : {0, 2}) made.reportsPair(node, "4");
  const Fleet fleet = made.assess(true);
  EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kIncomplete) << nodeOf(fleet, "n4").reason;
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kAccepted) << nodeOf(fleet, "n1").reason;
}

TEST(Blame, ARecordThatTellsALargerRunReachesNoNodeOfAnother) {
  {
    GroupFleet made(3, 6);
    made.inTwoGroups();
    made.record(2).nodeCount = 4;
    made.expectOnly({0, 1, 2, 3});
    const Fleet fleet = made.assess(true);
    EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kAccepted) << nodeOf(fleet, "n3").reason;
  }
  GroupFleet made(3, 6);
  made.inTwoGroups();
  made.leaveOut(2);
  made.record(3).nodeCount = 4;
  made.reports(3, "node n0", "node");
  const Fleet fleet = made.assess(true);
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAccepted) << nodeOf(fleet, "n0").reason;
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kIncomplete);
}

TEST(Blame, APartOfSeveralRunsIsAcceptedWhereTheOthersLeftRecords) {
  GroupFleet made(3, 6);
  made.inTwoGroups();
  made.expectOnly({0, 1, 3});
  const Fleet fleet = made.assess(true);
  for (const char* node : {"n0", "n1", "n3"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
}

TEST(Blame, ASlowUplinkIsNoFaultOfTheNodesBelowItThatReportIt) {
  GroupFleet made(3, 6);
  for (const int node : {0, 2, 3}) made.reports(node, "uplink of l1", "leaf-uplink");
  const Fleet fleet = made.assess();
  made.expectFirst(fleet, "switch l1");
  EXPECT_EQ(fleet.incidents.size(), 1u);
  for (const char* node : {"n0", "n2", "n3"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAffected) << nodeOf(fleet, node).reason;
  for (const char* node : {"n1", "n4", "n5"}) EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted);
  EXPECT_EQ(fleet.exitCode, 1);
}

/// By its number in a test of pairs, and by its name in the ring.
TEST(Blame, TheLinkToANodeWithoutARecordIsOneByWhateverName) {
  GroupFleet made(3, 5);
  made.reportsPair(3, "2");
  for (const int node : {0, 3}) made.reports(node, "link n2 - n3", "link");
  made.leaveOut(2);
  const Fleet fleet = made.assess();
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kAffected) << nodeOf(fleet, "n3").reason;
  ASSERT_EQ(fleet.suspects.size(), 1u);
  EXPECT_EQ(fleet.suspects.front().name(), "link n2 - n3");
}

TEST(Blame, ManyPartsThatOneRecordNamesHideNoFindingOfAnother) {
  GroupFleet made(3, 5);
  made.reportsPair(0, "4");
  StageRecord& flood = made.stage(2);
  for (int i = 0; i < 80; ++i) {
    std::vector<std::string> names;
    for (int k = 0; k < 90; ++k) names.push_back(fmt::format("rank 9000000 (x{}.{})", i, k));
    Verdict verdict = flood.verdicts.front();
    verdict.outcome = Outcome::kError;
    verdict.rank = 5000 + i;
    verdict.device.clear();
    verdict.detail = fmt::format("rank {} was stopped because {} died", verdict.rank, fmt::join(names, ", "));
    flood.verdicts.push_back(verdict);
  }
  made.end(2, Acceptance::kIncomplete, 3);
  const Fleet fleet = made.assess();
  EXPECT_EQ(nodeOf(fleet, "n4").state, NodeState::kAffected) << nodeOf(fleet, "n4").reason;
  EXPECT_LE(fleet.suspects.size(), fleet::kMostSuspects);
  EXPECT_GT(fleet.suspectsLeft, 0u);
}

TEST(Blame, ANodeOfManyRecordsHasOneVoteOnTheNumberOfNodes) {
  GroupFleet made(3, 4);
  constexpr int kStages = 5;
  for (int node = 0; node < made.nodes(); ++node)
    for (int i = 1; i < kStages; ++i) {
      StageRecord more = made.stage(node);
      more.name = more.cases.front().id = fmt::format("more{}", i);
      for (Verdict& verdict : more.verdicts) verdict.stage = verdict.caseId = more.name;
      made.record(node).stages.push_back(more);
      settle(made.record(node));
    }
  const Record honest = made.record(3);
  for (int kept = 0; kept < kStages; ++kept) {
    Record part = honest;
    part.nodeCount = 99;
    for (int i = 0; i < kStages; ++i)
      if (i != kept) testing::leaveElsewhere(part, i == 0 ? kStage : fmt::format("more{}", i));
    if (kept > 0)
      made.addAlso(part, fmt::format("n3.{}", kept));
    else
      made.record(3) = part;
  }
  const Fleet fleet = made.assess();
  for (const char* node : {"n0", "n1", "n2"})
    EXPECT_EQ(nodeOf(fleet, node).state, NodeState::kAccepted) << nodeOf(fleet, node).reason;
  EXPECT_EQ(nodeOf(fleet, "n3").state, NodeState::kIncomplete);
}

TEST(Blame, ANodeWithAnotherPlanThanMostIsNamedAndNotTheOthers) {
  GroupFleet made(3);
  for (int node = 0; node < made.nodes(); ++node)
    made.didNotBegin(node,
                     fmt::format("{0} differs from most nodes: {0} has plan a1, and {1} has b2; all nodes "
                                 "of a run must have the same",
                                 GroupFleet::nodeText(1), GroupFleet::nodeText(0)));
  const Fleet fleet = made.assess();
  made.expectInnocent(fleet, {"n1"});
  made.expectFirst(fleet, "node n1");
}

TEST(Blame, ARankThatFailedByItselfIsNamedBesideOneThatDied) {
  const auto accused = fleet::accusedBy(
      "rank 2 (cpu0 of node 1 (n1)) failed, node 2 (n2) was lost: no heartbeat for 4 s; cpu0: out of memory");
  ASSERT_EQ(accused.size(), 2U);
  EXPECT_EQ(accused[0].node, 1);
  EXPECT_EQ(accused[1].node, 2);
}

TEST(Blame, NodeZeroIsBelievedBeforeTheNodeThatLostIt) {
  GroupFleet made(3);
  made.endBy(GroupFleet::nodeText(1) + " was lost: no heartbeat for 12 s");
  made.loses(1, GroupFleet::nodeText(1) + " lost " + GroupFleet::nodeText(0) +
                    ", which serves the store: no answer for 12 s (no error was reported)");
  const Fleet fleet = made.assess();
  made.expectInnocent(fleet, {"n1"});
  made.expectFirst(fleet, "node n1");
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kIncomplete);
}

TEST(Blame, OneMemberThatHoldsANodeToBeLostOfWhichNodeZeroSaysNothingIsNotBelieved) {
  for (const int liar : {1, 2})
    for (const int victim : {0, 3 - liar}) {
      SCOPED_TRACE(fmt::format("{} of {}", liar, victim));
      GroupFleet made(3);
      const std::string culprit = GroupFleet::nodeText(victim) + " was lost: no heartbeat for 12 s";
      made.loses(liar, culprit);
      for (Verdict& verdict : made.stage(liar).verdicts) verdict.outcome = Outcome::kError;
      made.end(liar, Acceptance::kIncomplete, 3);
      const Fleet fleet = made.assess();
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(victim)).state, NodeState::kAccepted);
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(liar)).state, NodeState::kAffected);
      EXPECT_THAT(nodeOf(fleet, GroupFleet::nameOf(liar)).reason, HasSubstr("cannot be told"));
      EXPECT_NE(fleet.exitCode, 0);
    }
}

/// Node 0 reports for all of a group.
TEST(Blame, AMemberThatNamesAnotherNodeSpeaksAgainstItself) {
  for (const auto& [culprit, kind] :
       {std::pair("node n2", "node"), {"node n2, rail 1", "node-rail"}, {"link n0 - n2", "link"}}) {
    SCOPED_TRACE(culprit);
    GroupFleet made(3);
    made.reports(1, culprit, kind);
    const Fleet fleet = made.assess();
    EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAccepted);
    EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kAccepted);
    EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kRejected);
  }
}

/// Each node reports what concerns itself, so that node 0's word does not stand alone.
TEST(Blame, ANodeIsRejectedByItsOwnWordAndNode0sAndNotByNode0sAlone) {
  for (const auto& [culprit, kind] : {std::pair("node n2", "node"), {"node n2, rail 1", "node-rail"}}) {
    SCOPED_TRACE(culprit);
    GroupFleet alone(3);
    alone.reports(0, culprit, kind);
    const Fleet one = alone.assess();
    EXPECT_EQ(nodeOf(one, "n2").state, NodeState::kIncomplete) << nodeOf(one, "n2").reason;
    EXPECT_THAT(nodeOf(one, "n2").reason, HasSubstr("so says n0, but not the record of n2"));
    EXPECT_EQ(nodeOf(one, "n0").state, NodeState::kAffected);
    EXPECT_NE(one.exitCode, 0);
    GroupFleet both(3);
    for (const int node : {0, 2}) both.reports(node, culprit, kind);
    EXPECT_EQ(nodeOf(both.assess(), "n2").state, NodeState::kRejected);
  }
}

/// What a node says of its link is no word against the node itself, nor is one other's word of its links.
TEST(Blame, ANodeIsNotRejectedByOnesWordBesideALinkThatFails) {
  GroupFleet named(3);
  for (const int node : {0, 1, 2}) named.reports(node, "link n1 - n2", "link");
  named.reports(0, "node n2", "node");
  EXPECT_EQ(nodeOf(named.assess(), "n2").state, NodeState::kIncomplete);
  GroupFleet links(3);
  for (const int node : {1, 2}) links.reportsPair(node, std::to_string(3 - node));
  links.reportsPair(0, "2");
  EXPECT_EQ(nodeOf(links.assess(), "n2").state, NodeState::kAffected);
  GroupFleet both(3);
  both.reports(0, "link n1 - n2", "link");
  both.reportsPair(0, "2");
  EXPECT_EQ(nodeOf(both.assess(), "n2").state, NodeState::kAffected);
}

/// A NIC that is slow in one direction may see only one of its slow links itself.
TEST(Blame, ANodeThatReportsOneOfItsThreeSlowLinksIsAtFault) {
  GroupFleet made(3);
  ASSERT_GT(made.nodes(), 3);
  for (const int node : {1, 2, 3}) made.reportsPair(node, "0");
  made.reportsPair(0, "1");
  const Fleet fleet = made.assess();
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kRejected);
  for (const char* other : {"n1", "n2", "n3"}) EXPECT_EQ(nodeOf(fleet, other).state, NodeState::kAffected);
}

TEST(Blame, ASlowLinkIsNeitherItsReportersNorOneEndsFault) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int a = made.below(made.nodes() - 1);
    const int b = a + 1 + made.below(made.nodes() - 1 - a);
    const std::string link = fmt::format("link n{} - n{}", a, b);
    // Rank 0 always reports; of the two ends not always both are asked.
    made.reports(0, link, "link");
    if (a > 0) made.reports(a, link, "link");
    const Fleet fleet = made.assess();
    made.expectInnocent(fleet, {GroupFleet::nameOf(a), GroupFleet::nameOf(b)});
    made.expectFirst(fleet, link);
    EXPECT_EQ(fleet.suspects.size(), 1u);
    for (const int end : {a, b}) {
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(end)).state, NodeState::kAffected);
      EXPECT_TRUE(nodeOf(fleet, GroupFleet::nameOf(end)).suspect);
    }
    EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kRejected)], 0u);
    EXPECT_EQ(fleet.exitCode, 1);
  }
}

TEST(Blame, ASlowPairIsNotTheFaultOfTheEndThatReportsIt) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int a = made.below(made.nodes() - 1);
    const int b = a + 1 + made.below(made.nodes() - 1 - a);
    made.reportsPair(b, std::to_string(a));
    const Fleet fleet = made.assess();
    made.expectInnocent(fleet, {GroupFleet::nameOf(a), GroupFleet::nameOf(b)});
    made.expectFirst(fleet,
                     fmt::format("link {}", fleet::linkName(GroupFleet::nameOf(a), GroupFleet::nameOf(b))));
    for (const int end : {a, b})
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(end)).state, NodeState::kAffected);
    EXPECT_EQ(fleet.exitCode, 1);
    EXPECT_EQ(fleet.incidents.size(), 1u);
  }
}

TEST(Blame, AnEndOfTwoSlowPairsIsAtFaultWhicheverEndReportsThem) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int bad = made.below(made.nodes());
    const int left = (bad + 1) % made.nodes(), right = (bad + 2) % made.nodes();
    made.reportsPair(left, std::to_string(bad));
    if (seed % 2 == 0)
      made.reportsPair(right, std::to_string(bad));
    else
      made.reportsPair(bad, std::to_string(right));
    const Fleet fleet = made.assess();
    made.expectFirst(fleet, "node " + GroupFleet::nameOf(bad));
    EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(bad)).state, NodeState::kRejected);
    for (const int end : {left, right})
      EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(end)).state, NodeState::kAffected);
    // Those who only have links to it are not named, and no act follows.
    for (const auto& node : fleet.nodes) {
      EXPECT_EQ(node.suspect, node.name == GroupFleet::nameOf(bad)) << node.name;
      EXPECT_FALSE(node.endOfLink) << node.name;
    }
    EXPECT_EQ(fleet.incidents.size(), 1u);
    EXPECT_EQ(fleet.exitCode, 1);
  }
}

TEST(Blame, LinksThatATestLocatesAreOneFindingAndRejectNoEnd) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int common = made.below(made.nodes());
    std::vector<std::string> ends = {GroupFleet::nameOf(common)};
    for (const int other : {(common + 1) % made.nodes(), (common + 2) % made.nodes()}) {
      ends.push_back(GroupFleet::nameOf(other));
      made.reports(0, "link " + fleet::linkName(ends.front(), ends.back()), "link");
    }
    const Fleet fleet = made.assess();
    EXPECT_EQ(fleet.incidents.size(), 1u);
    for (const std::string& end : ends) EXPECT_EQ(nodeOf(fleet, end).state, NodeState::kAffected) << end;
    EXPECT_EQ(fleet.exitCode, 1);
  }
}

/// An act follows for those ends whose link both ends report, whatever others say beside it.
TEST(Blame, TheEndsOfALinkAreThoseOfOneThatBothEndsReport) {
  struct Case {
    const char* name;
    std::vector<std::pair<int, int>> bothReport;  ///< located links
    std::vector<std::pair<int, int>> pairs;       ///< who reports, of whom
    std::set<std::string> ends;
  };
  for (const Case& one : std::vector<Case>{{"one link", {{1, 2}}, {}, {"n1", "n2"}},
                                           {"two of one node", {{1, 2}, {2, 3}}, {}, {"n1", "n2", "n3"}},
                                           {"and one node's word", {{1, 2}}, {{4, 2}}, {"n1", "n2"}},
                                           {"told by two tests", {{1, 2}}, {{2, 1}, {4, 2}}, {"n1", "n2"}},
                                           {"a pair, by one end", {}, {{2, 1}}, {}}}) {
    SCOPED_TRACE(one.name);
    GroupFleet made(5, 5);
    for (const auto& [a, b] : one.bothReport)
      for (const int reporter : {0, a, b})
        made.reports(reporter, fmt::format("link n{} - n{}, rail 3", a, b), "link");
    for (const auto& [reporter, peer] : one.pairs) made.reportsPair(reporter, std::to_string(peer));
    const Fleet fleet = made.assess();
    std::set<std::string> ends;
    for (const auto& node : fleet.nodes) {
      EXPECT_NE(node.state, NodeState::kRejected) << node.name << ": " << node.reason;
      if (node.endOfLink) ends.insert(node.name);
    }
    EXPECT_EQ(ends, one.ends);
    EXPECT_EQ(fleet.exitCode, 1);
  }
}

TEST(Blame, ALinkFromAPartToItselfHasNoOtherEnd) {
  for (const bool ofNodes : {true, false}) {
    GroupFleet made(5, 4);
    for (const char* other : {"1", "2", "3"}) {
      made.reports(1, fmt::format("link n1 - n{}", other), "link");
      const std::string gpu = std::string("gpu") + other;
      if (!ofNodes) made.stage(1).verdicts.back().labels = {{"a", "gpu1"}, {"b", gpu}};
    }
    const Fleet fleet = made.assess();
    EXPECT_NE(nodeOf(fleet, "n1").state, NodeState::kAccepted);
    for (const char* other : {"n0", "n2", "n3"}) EXPECT_NE(nodeOf(fleet, other).state, NodeState::kRejected);
    EXPECT_EQ(fleet.exitCode, 1);
  }
}

/// Whoever writes one record may say anything of a stage in which the others had no part, or only a warning.
TEST(Blame, OneRecordRejectsNoOtherNodeWhateverItSays) {
  for (const bool took : {true, false})
    for (const bool labels : {true, false}) {
      GroupFleet made(5, 4);
      for (int node = 1; node < made.nodes(); ++node) {
        StageRecord& at = made.stage(node);
        Verdict verdict = at.verdicts.front();
        if (!took) {
          at.state = StageState::kSkipped;
          at.reason = "there are fewer nodes";
          at.group = Json();
          at.ranks.clear();
          at.cases.clear();
          at.verdicts.clear();
          verdict = Verdict();
          verdict.stage = kStage;
          verdict.required = false;
          verdict.detail = at.reason;
        }
        verdict.outcome = took ? Outcome::kWarn : Outcome::kSkipped;
        at.verdicts.push_back(verdict);
        made.end(node, Acceptance::kAccepted, 0);
      }
      if (labels)
        for (int node = 1; node < made.nodes(); ++node)
          made.reports(0, fmt::format("node n{}", node), "node");
      StageRecord& lie = made.stage(0);
      const std::string text = "node 1 (n1), node 2 (n2), node 3 (n3) were lost";
      if (!labels) {
        lie.group["culprit"] = text;
        for (const Outcome outcome : {Outcome::kError, Outcome::kFail}) {
          lie.verdicts.push_back(lie.verdicts.front());
          lie.verdicts.back().outcome = outcome;
          lie.verdicts.back().detail = text;
        }
      }
      made.end(0, Acceptance::kRejected, 1);
      const Fleet fleet = made.assess();
      EXPECT_NE(fleet.exitCode, 0);
      for (const auto& node : fleet.nodes)
        if (node.name != "n0") {
          EXPECT_NE(node.state, NodeState::kRejected) << took << labels << node.reason;
        }
    }
}

/// Node 0 of a ring reports the slow links of all, each as a failure of its own.
TEST(Blame, WhoReportsManyPartsOfOthersIsNotRejectedForThem) {
  GroupFleet made(5, 40);
  for (int node = 1; node < 31; ++node)
    for (const int reporter : {0, node}) made.reports(reporter, fmt::format("node n{}", node), "node");
  const Fleet fleet = made.assess();
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAffected) << nodeOf(fleet, "n0").reason;
  for (int node = 1; node < 31; ++node)
    EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(node)).state, NodeState::kRejected) << node;
  EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kRejected)], 30u);
}

TEST(Blame, ManyFlakesThatThePlanAllowsBesideOneOfAnotherRejectNobody) {
  GroupFleet made(5, 4);
  for (const int node : {0, 2}) {
    made.reports(node, "node n2", "node");
    made.stage(node).verdicts.back().outcome = Outcome::kFlaky;
  }
  StageRecord& own = made.record(0).stages[1];
  own.evidence["allow_flaky"] = true;
  for (int i = 0; i < 60; ++i) {
    own.verdicts.push_back(own.verdicts.front());
    own.verdicts.back().outcome = Outcome::kFlaky;
    own.verdicts.back().caseId = fmt::format("case-{}", i);
  }
  for (const int node : {0, 2}) made.end(node, Acceptance::kRejected, 1);
  const Fleet fleet = made.assess();
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAffected) << nodeOf(fleet, "n0").reason;
  EXPECT_EQ(nodeOf(fleet, "n2").state, NodeState::kRejected) << nodeOf(fleet, "n2").reason;
}

TEST(Blame, APairThatNamesNoOtherNodeIsItsReportersFault) {
  for (const char* peer : {"99", "-1", "2x", "", "00000000000000000000001"}) {
    SCOPED_TRACE(peer);
    GroupFleet made(5);
    made.reportsPair(1, peer);
    EXPECT_EQ(nodeOf(made.assess(), "n1").state, NodeState::kRejected);
  }
  GroupFleet made(5);
  made.reportsPair(1, "1");
  EXPECT_EQ(nodeOf(made.assess(), "n1").state, NodeState::kRejected) << "a node is no peer of itself";
}

TEST(Blame, AFaultOfItsOwnBesideASlowPairRejectsTheNode) {
  GroupFleet made(6);
  made.reportsPair(1, "2");
  Verdict own = made.stage(1).verdicts.back();
  own.labels = {{"path", "loopback"}, {"port", "mlx5_0/1"}};
  made.stage(1).verdicts.push_back(own);
  made.end(1, Acceptance::kRejected, 1);
  EXPECT_EQ(nodeOf(made.assess(), "n1").state, NodeState::kRejected);
}

TEST(Blame, ANodeThatOthersNameIsRejectedAndTheyAreNot) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    const int slow = made.below(made.nodes());
    for (const int node : std::set{0, slow}) made.reports(node, fmt::format("node n{}", slow), "node");
    const Fleet fleet = made.assess();
    made.expectInnocent(fleet, {GroupFleet::nameOf(slow)});
    made.expectFirst(fleet, "node " + GroupFleet::nameOf(slow));
    EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(slow)).state, NodeState::kRejected);
  }
}

TEST(Blame, WhatAUserOrASchedulerEndedIsNobodysFault) {
  for (const char* detail :
       {"it was told to stop before it finished", "rank 3 (gpu3) was stopped because the run was cancelled",
        "rank 3 (gpu3) was told to stop by a signal that Muster did not send",
        "the time limit of Slurm job 7 (1 h) ended the run; set a longer one with --time",
        "the run was interrupted"}) {
    GroupFleet made(4);
    for (int node = 0; node < made.nodes(); ++node) {
      for (Verdict& verdict : made.stage(node).verdicts) {
        verdict.outcome = Outcome::kError;
        verdict.detail = detail;
      }
      made.end(node, Acceptance::kInterrupted, 130);
    }
    const Fleet fleet = made.assess();
    EXPECT_TRUE(fleet.suspects.empty()) << detail << ": " << fleet.suspects.front().name();
    for (const auto& node : fleet.nodes) EXPECT_EQ(node.state, NodeState::kIncomplete);
    EXPECT_EQ(fleet.exitCode, 3);
  }
}

TEST(Blame, OneNodesInterruptionIsNotAFindingOfTheOthers) {
  GroupFleet made(6);
  made.endBy(GroupFleet::nodeText(1) + " was interrupted by its user");
  made.end(1, Acceptance::kInterrupted, 130);
  const Fleet fleet = made.assess();
  EXPECT_TRUE(fleet.suspects.empty());
  EXPECT_EQ(nodeOf(fleet, "n1").state, NodeState::kIncomplete);
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kAffected);
  EXPECT_THAT(nodeOf(fleet, "n0").reason, HasSubstr("was interrupted by its user"));
  EXPECT_EQ(fleet.exitCode, 3);
}

TEST(Blame, AnOwnFailureIsNotExcusedByAnothersFinding) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    made.reports(0, "link n1 - n2", "link");
    const int sick = made.below(made.nodes());
    Record& record = made.record(sick);
    for (Verdict& verdict : record.stages[1].verdicts)
      if (verdict.device == "gpu3" && verdict.expectation) {
        verdict.outcome = Outcome::kFail;
        verdict.detail = "gpu3: too slow";
        break;
      }
    made.end(sick, Acceptance::kRejected, 1);
    const Fleet fleet = made.assess();
    EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(sick)).state, NodeState::kRejected);
    EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kRejected)], 1u);
  }
}

TEST(Blame, AnOwnErrorBesideAnothersFindingIsIncomplete) {
  GroupFleet made(8);
  made.reports(0, "link n1 - n2", "link");
  Verdict& verdict = made.record(0).stages[1].verdicts.front();
  verdict.outcome = Outcome::kError;
  verdict.detail = "no valid measurement: it is no number";
  made.end(0, Acceptance::kRejected, 1);
  const Fleet fleet = made.assess();
  EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kIncomplete) << nodeOf(fleet, "n0").reason;
  EXPECT_EQ(fleet.exitCode, 1) << "the link's failure stays one";
}

/// One way in which the record of a node that failed blames `other`, of which it has no say.
struct FalseBlame {
  const char* kind;
  bool names;  ///< it names the other node; else it only excuses itself
  std::function<void(StageRecord& stage, Verdict& verdict, int other)> apply;
};

/// What a node's own stage says in words is an error, as the runner writes it.
void sayOf(Verdict& verdict, const std::string& detail) {
  verdict.outcome = Outcome::kError;
  verdict.metric.clear();
  verdict.expectation.reset();
  verdict.detail = detail;
}

const std::vector<FalseBlame>& falseBlames() {
  const auto label = [](const char* kind, const char* before, const char* after) {
    return [=](StageRecord&, Verdict& verdict, int other) {
      verdict.outcome = Outcome::kFail;
      verdict.metric = "ring.culprits";
      verdict.labels = {{"culprit", before + GroupFleet::nameOf(other) + after}, {"kind", kind}};
    };
  };
  static const std::vector<FalseBlame> all = {
      {"a node by its label", true, label("node", "node ", "")},
      {"a rail by its label", true, label("node-rail", "node ", ", rail 1")},
      {"a link by its label", true, label("link", "link n0 - ", ", rail 1")},
      {"a link with itself first", true, label("link", "link ", " - n0")},
      {"a switch by its label", false, label("leaf-uplink", "uplink of leaf-", "")},
      {"both ends of a link", true,
       [](StageRecord&, Verdict& verdict, int other) {
         verdict.outcome = Outcome::kFail;
         verdict.metric = "ring.pair_bandwidth";
         verdict.labels = {{"a", GroupFleet::nameOf(other)}, {"b", GroupFleet::nameOf(other)}, {"rail", "0"}};
       }},
      {"a lost node by the group's culprit", true,
       [](StageRecord& stage, Verdict& verdict, int other) {
         stage.group = {{"world_size", 8},
                        {"first_rank", 0},
                        {"nodes", 4},
                        {"culprit", GroupFleet::nodeText(other) + " was lost: no heartbeat for 12 s"}};
         sayOf(verdict, stage.group["culprit"]);
       }},
      {"a rank of another node in words", true,
       [](StageRecord&, Verdict& verdict, int other) {
         sayOf(verdict, fmt::format("rank 3 (gpu3) was stopped because rank 99 (gpu1 of {}) was killed",
                                    GroupFleet::nodeText(other)));
       }},
      {"a node that did not arrive", true,
       [](StageRecord&, Verdict& verdict, int other) {
         sayOf(verdict,
               "1 of 4 nodes did not arrive: " + GroupFleet::nodeText(other) + "; look at their runs");
       }},
      {"an error excused by another stage", false,
       [](StageRecord&, Verdict& verdict, int) {
         sayOf(verdict, "prerequisite stage env did not pass (fail)");
       }},
      {"left out for want of a stage that did not fail", false,
       [](StageRecord&, Verdict& verdict, int) {
         sayOf(verdict, "prerequisite stage env did not pass (fail)");
         verdict.outcome = Outcome::kSkipped;
       }},
  };
  return all;
}

TEST(Blame, ANodesOwnStageBlamesNobodyElse) {
  for (unsigned seed = 0; seed < 3 * falseBlames().size(); ++seed) {
    const FalseBlame& blame = falseBlames()[seed % falseBlames().size()];
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, blame.kind));
    GroupFleet made(seed);
    const int forger = made.below(made.nodes());
    const int other = (forger + 1 + made.below(made.nodes() - 1)) % made.nodes();
    StageRecord& stage = made.record(forger).stages[static_cast<size_t>(made.below(2))];
    const Scope written = stage.scope;
    stage.scope = made.below(2) == 0 ? Scope::kNode : Scope::kDevice;
    const auto verdict = std::find_if(stage.verdicts.begin(), stage.verdicts.end(),
                                      [](const Verdict& v) { return v.outcome == Outcome::kPass; });
    ASSERT_NE(verdict, stage.verdicts.end());
    blame.apply(stage, *verdict, other);
    const bool failed = verdict->outcome == Outcome::kFail;
    made.end(forger, failed ? Acceptance::kRejected : Acceptance::kIncomplete, failed ? 1 : 3);

    const Fleet fleet = made.assess();
    const auto& guilty = nodeOf(fleet, GroupFleet::nameOf(forger));
    EXPECT_EQ(guilty.state, failed ? NodeState::kRejected : NodeState::kIncomplete) << guilty.reason;
    for (int node = 0; node < made.nodes(); ++node)
      if (node != forger) {
        EXPECT_EQ(nodeOf(fleet, GroupFleet::nameOf(node)).state, NodeState::kAccepted) << node;
        EXPECT_FALSE(nodeOf(fleet, GroupFleet::nameOf(node)).suspect) << node;
      }
    // The others say that the stage was one of all nodes, or of single devices.
    ASSERT_EQ(fleet.findings.size(), (stage.scope == written ? 0u : 1u) + (blame.names ? 1u : 0u));
    if (!blame.names) continue;
    EXPECT_STREQ(findingKindName(fleet.findings.back().kind), "binding");
    EXPECT_THAT(fleet.findings.back().nodes, ::testing::ElementsAre(GroupFleet::nameOf(forger)));
    // Of a link it may be the end that is named first.
    EXPECT_THAT(
        fleet.findings.back().text,
        ::testing::AnyOf(HasSubstr("a fault of " + GroupFleet::nameOf(other)), HasSubstr("a fault of n0 ")));
  }
}

TEST(Blame, AStageOfAllNodesBlamesOnlyItsMembers) {
  for (unsigned seed = 0; seed < kFleets; ++seed) {
    SCOPED_TRACE(seed);
    GroupFleet made(seed);
    // One node's record is of no group: its own stages alone.
    const int alone = 1 + made.below(made.nodes() - 1);
    std::vector<int> members;
    for (int node = 0; node < made.nodes(); ++node)
      if (node != alone) members.push_back(node);
    made.met(members);
    testing::leaveElsewhere(made.record(alone), kStage);
    made.record(alone).nodeRank = 0;
    made.record(alone).nodeCount = 1;
    const std::string name = GroupFleet::nameOf(alone);
    made.reports(0, seed % 2 == 0 ? "node " + name : "link n0 - " + name, seed % 2 == 0 ? "node" : "link");
    const Fleet fleet = made.assess();
    EXPECT_EQ(nodeOf(fleet, "n0").state, NodeState::kIncomplete) << nodeOf(fleet, "n0").reason;
    EXPECT_THAT(nodeOf(fleet, "n0").reason, HasSubstr("counts for nobody"));
    EXPECT_NE(nodeOf(fleet, name).state, NodeState::kRejected);
    EXPECT_FALSE(nodeOf(fleet, name).suspect);
    ASSERT_EQ(fleet.findings.size(), 1u);
    EXPECT_THAT(fleet.findings[0].text, HasSubstr("a fault of " + name));
  }
}

TEST(Blame, FindingsStandInTheOrderOfTheirGravity) {
  GroupFleet made(9);
  const auto fail = [&](int node, const char* metric) {
    Verdict& verdict = made.stage(node).verdicts.front();
    verdict.outcome = Outcome::kFail;
    verdict.metric = metric;
    verdict.detail = "gpu0: bad";
    made.end(node, Acceptance::kRejected, 1);
  };
  fail(0, "compute.gemm_throughput");
  fail(1, "env.device_lost");
  fail(2, "env.telemetry.ecc_uncorrected");
  const Fleet fleet = made.assess();
  std::vector<std::string> order;
  for (const auto& suspect : fleet.suspects)
    if (suspect.kind == SuspectKind::kDevice) order.push_back(suspect.node);
  EXPECT_THAT(order, ::testing::ElementsAre("n2", "n1", "n0"));
}

TEST(Cause, ReadsWhatTheRunnerSays) {
  const auto one = [](const std::string& text) {
    const auto accused = fleet::accusedBy(text);
    std::string all;
    for (const auto& m : accused)
      all += fmt::format("[{} {} {} {}{}]", m.rank, m.device, m.node, m.host,
                         m.interrupted ? " interrupted" : "");
    return all;
  };
  EXPECT_EQ(one("rank 3 (gpu0 of node 3 (n3)) ended with exit code 7"), "[3 gpu0 3 n3]");
  EXPECT_EQ(one("rank 3 (node 3) is stuck in the kernel (state D for 30 s)"), "[3  3 ]");
  EXPECT_EQ(one("rank 3 (gpu3) was killed by SIGKILL (Killed)"), "[3 gpu3 -1 ]");
  EXPECT_EQ(one("node 1 (n1), node 2 (n2) were lost: no heartbeat for 12 s"), "[-1  1 n1][-1  2 n2]");
  EXPECT_EQ(one("node 0 (n0) lost every other node: its own link is at fault, or the network as a whole"),
            "[-1  0 n0]");
  EXPECT_EQ(one("node 1 (n1) was interrupted by its user, node 2 (n2) was started again in the middle of "
                "this stage"),
            "[-1  1 n1 interrupted][-1  2 n2]");
  EXPECT_EQ(one("2 of 4 nodes did not arrive: node 1 (n1), node 3; look at their runs, or start them"),
            "[-1  1 n1][-1  3 ]");
  EXPECT_EQ(one("no faulty component found: no rank failed"), "");
  // Only node 0 counts absent nodes.
  EXPECT_EQ(one("node 2 (n2) does not take part: 1 of 4 nodes did not arrive: node 1 (n1)"), "[-1  2 n2]");
  EXPECT_EQ(one("node 2 (n2) reports: node 1 (n1) lost node 0 (n0), which serves the store"), "[-1  2 n2]");
  // Whoever explains a finding, and in whose words, is not accused by it.
  for (const char* subject : {"node 0 (n0) was lost", "node 2 (n2) lost node 0 (n0), which serves the store",
                              "node 0 (n0) did not come to this stage within 64 s",
                              "rank 3 (gpu0 of node 3 (n3)) ended with exit code 7",
                              "2 of 4 nodes did not arrive: node 1 (n1), node 3"})
    for (const char* explanation :
         {": no answer for 12 s (node 2 (n2) could not reach the store (10.0.0.1:29400: no answer in time))",
          ": node 2 (n2) met nobody", "; last progress: rank 1 (gpu0 of node 1 (n1)), rank 2",
          "; here: rank 7 (gpu3) was stopped because node 0 (n0) was lost"})
      EXPECT_EQ(one(std::string(subject) + explanation), one(subject)) << subject << explanation;
  EXPECT_EQ(fleet::sourceRank("the first at 4096, from rank 11"), "11");
  EXPECT_EQ(fleet::sourceRank("from a rank that cannot be told"), "");
  EXPECT_EQ(fleet::sourceRank("the first at 4096"), std::nullopt);
  EXPECT_EQ(fleet::caseCause("rank 1 of 4 lost its group in a barrier: closed by peer", "", false).cause,
            Cause::kGroup);
  EXPECT_EQ(fleet::caseCause("cudaMalloc failed", "node 1 (n1) was lost", false).cause, Cause::kOwn)
      << "what failed before the group ended is its own";
  EXPECT_EQ(fleet::caseCause("prerequisite stage gemm did not pass (fail)", "", false).cause, Cause::kNeed);
  const fleet::CaseCause lost = fleet::caseCause(
      "node 1 (n1) lost node 0 (n0), which serves the store: no answer for 5 s (no answer in time)", "",
      false);
  EXPECT_EQ(lost.cause, Cause::kPeer) << "before the group was formed, it has no culprit";
  ASSERT_EQ(fleet::accusedBy(std::string(lost.source)).size(), 1U);
  EXPECT_EQ(fleet::accusedBy(std::string(lost.source))[0].node, 0);
  EXPECT_EQ(fleet::caseCause("rank 0 (gpu0) was killed by SIGSEGV", "", true).cause, Cause::kStopped);
  // A rank's own words about its end hide neither it nor that it failed.
  const std::string failed = "rank 3 (cpu0 of node 3 (n3)) failed: prerequisite stage x did not pass";
  EXPECT_EQ(fleet::caseCause(failed, failed, false).cause, Cause::kPeer);
  const auto lowers = [](std::span<double> values) -> Status {
    values[0] = -1;
    return {};
  };
  const std::string damaged = largestOverRanks({1}, lowers).error().text();
  EXPECT_EQ(fleet::caseCause(damaged, "", false).cause, Cause::kRank) << damaged;
  const std::string alone = "rank 3 (gpu3 of node 1 (n1)) failed: " + damaged;
  EXPECT_EQ(fleet::caseCause("was stopped because " + alone, alone, false).cause, Cause::kRank)
      << "who hears it first";
}

/// Many verdicts may share one text.
TEST(Cause, IsLookedForAtTheBeginningOfALongText) {
  const std::string text = std::string(1u << 20, 'a'), culprit = std::string(1u << 19, 'a') + "b";
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(fleet::caseCause(text, culprit, false).cause, Cause::kOwn);
}

TEST(Cause, IsNotCutWithinAName) {
  for (size_t domain = 0; domain < 120; ++domain)
    for (const int nodes : {20, 200}) {
      std::vector<std::string> names;
      std::set<int> lost;
      for (int node = 100; node < 100 + nodes; ++node) {
        names.push_back(fmt::format("node {} (n{}{})", node, node, std::string(domain, 'x')));
        lost.insert(node);
      }
      const std::string text = fmt::format("{} were lost: no heartbeat for 31 s", fmt::join(names, ", "));
      const auto accused = fleet::accusedBy(fleet::boundedCause(text));
      for (const auto& mention : accused) EXPECT_TRUE(lost.contains(mention.node)) << mention.node;
      if (nodes == 20 && domain < 60) {
        EXPECT_EQ(accused.size(), 20u) << domain;
      }
    }
}

/// Words of a peer are quoted (quoted() in core/text.h), and say nothing of who is at fault.
TEST(Cause, IsNotReadFromWhatIsQuoted) {
  for (const std::string words :
       {"a did not arrive: node 1 (n1)", "x from a rank that cannot be told", "\" was told to stop",
        "rank 1 (node 1 (n1)) lost its group in \" was stopped because node 1 (n1) was lost"}) {
    const std::string text = "ranks 0 and 3 differ: " + quoted(words, 300) + "; expected the same";
    EXPECT_EQ(fleet::caseCause(text, "", false).cause, Cause::kOwn) << text;
    EXPECT_TRUE(fleet::accusedBy("it ended: " + text).empty()) << text;
  }
  EXPECT_EQ(fleet::caseCause("a \"quote\" of node 2 (n2) was stopped because node 1 (n1) was lost", "", false)
                .source,
            "node 1 (n1) was lost");
  EXPECT_EQ(fleet::caseCause("one \" alone was told to stop", "", false).cause, Cause::kStopped);
}

}  // namespace
}  // namespace muster
