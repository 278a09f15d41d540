// SPDX-License-Identifier: Apache-2.0
// Generated fleets with a known number of faults: one incident for each, the most urgent first, with part,
// place, cause and action.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using fleet::Fleet;
using fleet::Incident;
using fleet::NodeState;
using fleet::Urgency;
using testing::FleetFolder;
using ::testing::HasSubstr;
using testing::nodeOf;
using testing::nodeRecord;
using testing::settle;

struct Failure {
  std::string metric;
  std::string device;
  Labels labels = {};
  Outcome outcome = Outcome::kFail;
  std::string detail = "";
};

/// Adds a verdict to the record's last stage.
void add(Record& record, const Failure& failure) {
  StageRecord& stage = record.stages.back();
  Verdict verdict;
  verdict.outcome = failure.outcome;
  verdict.stage = stage.name;
  verdict.caseId = stage.cases.front().id;
  verdict.metric = failure.metric;
  verdict.device = failure.device;
  verdict.labels = failure.labels;
  verdict.observed = 1;
  verdict.limit = 0;
  verdict.margin = std::nan("");
  verdict.detail = failure.detail.empty() ? failure.device + ": 1, required at most 0" : failure.detail;
  verdict.remedy = "do something";
  stage.verdicts.push_back(verdict);
}

void reject(Record& record, Acceptance acceptance = Acceptance::kRejected) {
  settle(record);
  record.acceptance = acceptance;
  record.exitCode = acceptance == Acceptance::kRejected ? 1 : 3;
  record.reasons = {"as its counts say"};
}

/// One fault of each kind that scenarios know, in the record of one node.
struct FaultKind {
  const char* name;
  Urgency urgency;
  bool device;  ///< a device is at fault
  std::function<void(Record&, const std::string& gpu)> plant;
};

const std::vector<FaultKind>& faultKinds() {
  static const std::vector<FaultKind> kinds = {
      {"slow", Urgency::kB, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"compute.gemm_throughput", gpu});
         add(r, {"compute.sustained_throughput", gpu});
       }},
      {"throttle", Urgency::kB, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"env.throttle_thermal", gpu});
         add(r, {"compute.gemm_throughput", gpu});
       }},
      {"ecc", Urgency::kA, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"env.ecc_uncorrected", gpu});
         add(r, {"env.row_remap_pending", gpu});
         add(r, {"env.xid_fatal", gpu, {{"xid", "XID 95"}}});
       }},
      {"lost", Urgency::kA, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"env.xid_fatal", gpu, {{"xid", "XID 79"}}});
         add(r, {"", gpu, {}, Outcome::kError, gpu + ": fell off the bus"});
         add(r, {"env.unreadable_sources", "", {}, Outcome::kError, "driver of " + gpu});
       }},
      {"corruption", Urgency::kA, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"compute.gemm_wrong_elements", gpu});
         add(r, {"compute.gemm_repeat_mismatches", gpu});
         add(r, {"", "", {}, Outcome::kSkipped, "prerequisite stage gemm failed"});
       }},
      {"hang", Urgency::kB, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"", gpu, {}, Outcome::kError, gpu + ": made no progress for 20s and was killed"});
         add(r, {"compute.gemm_throughput", gpu, {}, Outcome::kError, "no measurement"});
       }},
      {"missing", Urgency::kA, false,
       [](Record& r, const std::string&) {
         add(r, {"env.device_count", ""});
       }},
      {"slow link", Urgency::kB, false,
       [](Record& r, const std::string& gpu) {
         const std::string other = gpu == "gpu0" ? "gpu1" : "gpu0";
         add(r, {"memory.peer_bandwidth", gpu, {{"peer", other}}});
         add(r, {"memory.peer_bandwidth", other, {{"peer", gpu}}});
       }},
      {"links of one GPU", Urgency::kB, true,
       [](Record& r, const std::string& gpu) {
         for (int i = 0; i < 8; ++i)
           if (const std::string other = fmt::format("gpu{}", i); other != gpu) {
             add(r, {"memory.peer_bandwidth", other, {{"peer", gpu}}});
             add(r, {"memory.peer_bandwidth", gpu, {{"peer", other}}});
           }
       }},
      {"port", Urgency::kB, false,
       [](Record& r, const std::string&) {
         add(r, {"env.rdma_link_downed", "", {{"port", "mlx5_3/1"}}});
       }},
  };
  return kinds;
}

/// 300 nodes in racks of 10, with faults on some of them.
class FaultyFleet {
 public:
  explicit FaultyFleet(unsigned seed) : random_(seed) {
    options_.topologyFrom = "racks.txt";
    for (int i = 0; i < kNodes; ++i) {
      options_.expected.push_back({nameOf(i), "", false});
      options_.topology[fmt::format("R{:02}", i / 10)].push_back(nameOf(i));
    }
  }

  static std::string nameOf(int node) { return fmt::format("n{:03}", node); }
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

  /// A node without a fault yet.
  int pick() {
    for (;;)
      if (const int node = below(kNodes); faulty_.insert(node).second) return node;
  }

  Fleet assess(const std::map<int, std::pair<const FaultKind*, std::string>>& faults,
               const std::set<int>& absent) {
    for (int i = 0; i < kNodes; ++i) {
      if (absent.contains(i)) continue;
      Record record = nodeRecord(nameOf(i));
      if (const auto fault = faults.find(i); fault != faults.end()) {
        fault->second.first->plant(record, fault->second.second);
        reject(record, std::string(fault->second.first->name) == "hang" ? Acceptance::kIncomplete
                                                                        : Acceptance::kRejected);
      }
      folder_.add(record);
    }
    return folder_.assess(options_);
  }

 private:
  static constexpr int kNodes = 300;
  std::mt19937 random_;
  std::set<int> faulty_;
  fleet::FleetOptions options_;
  FleetFolder folder_;
};

TEST(Incidents, AreAsManyAsTheFaultsAndTheMostUrgentFirst) {
  for (const unsigned seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    FaultyFleet made(seed);
    std::map<int, std::pair<const FaultKind*, std::string>> faults;
    for (const FaultKind& kind : faultKinds())
      for (int i = 0; i < 1 + made.below(2); ++i)
        faults[made.pick()] = {&kind, fmt::format("gpu{}", made.below(8))};
    const std::set<int> absent = {made.pick(), made.pick()};
    const Fleet fleet = made.assess(faults, absent);
    std::string listed;
    for (const Incident& one : fleet.incidents)
      listed +=
          fmt::format("{} {} {}: {}\n", one.urgencyName(), fmt::join(one.nodes, ","), one.part, one.cause);
    EXPECT_EQ(fleet.incidents.size(), faults.size() + absent.size()) << listed;
    EXPECT_TRUE(std::is_sorted(fleet.incidents.begin(), fleet.incidents.end(),
                               [](const Incident& a, const Incident& b) { return a.order < b.order; }));
    for (const auto& [node, fault] : faults) {
      const std::string name = FaultyFleet::nameOf(node);
      SCOPED_TRACE(fmt::format("{} on {} {}", fault.first->name, name, fault.second));
      const auto at = std::find_if(fleet.incidents.begin(), fleet.incidents.end(), [&](const Incident& one) {
        return one.nodes == std::vector<std::string>{name};
      });
      ASSERT_NE(at, fleet.incidents.end()) << listed;
      EXPECT_EQ(at->urgency, fault.first->urgency) << at->cause;
      EXPECT_EQ(at->place, fmt::format("R{:02}, slot {}", node / 10, node % 10 + 1));
      EXPECT_FALSE(at->cause.empty());
      EXPECT_FALSE(at->action.empty());
      EXPECT_THAT(at->command, HasSubstr("# on " + name));
      if (fault.first->device) {
        EXPECT_EQ(at->part, fault.second);
        EXPECT_FALSE(at->serial.empty());
      }
      EXPECT_NE(nodeOf(fleet, name).state, NodeState::kAccepted);
    }
  }
}

TEST(Incidents, OfManyNodesThatAreOpenForOneReasonAreOne) {
  FaultyFleet made(3);
  std::set<int> absent;
  while (absent.size() < 40) absent.insert(made.pick());
  const Fleet fleet = made.assess({}, absent);
  ASSERT_EQ(fleet.incidents.size(), 1u);
  EXPECT_EQ(fleet.incidents[0].nodeCount, 40u);
  EXPECT_EQ(fleet.incidents[0].urgency, Urgency::kA);
}

TEST(Incidents, LeaveNoFlaggedPartAndNoOpenNodeOut) {
  FaultyFleet made(4);
  std::map<int, std::pair<const FaultKind*, std::string>> faults;
  for (int i = 0; i < 12; ++i)
    faults[made.pick()] = {
        &faultKinds()[static_cast<size_t>(made.below(static_cast<int>(faultKinds().size())))], "gpu2"};
  const Fleet fleet = made.assess(faults, {});
  for (const auto& node : fleet.nodes) {
    if (node.state == NodeState::kAccepted) continue;
    EXPECT_TRUE(std::any_of(fleet.incidents.begin(), fleet.incidents.end(), [&](const Incident& one) {
      return one.blocks() && std::find(one.nodes.begin(), one.nodes.end(), node.name) != one.nodes.end();
    })) << node.name;
  }
}

}  // namespace
}  // namespace muster
