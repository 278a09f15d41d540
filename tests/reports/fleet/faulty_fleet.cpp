// SPDX-License-Identifier: Apache-2.0
// See faulty_fleet.h.
#include "tests/reports/fleet/faulty_fleet.h"

#include <fmt/format.h>

#include <cmath>

#include "tests/runner/record/sample/sample_record.h"

namespace muster::testing {

using fleet::Urgency;

namespace {

constexpr int kNodes = 300;
constexpr int kOfRack = 10;

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
  if (failure.outcome == Outcome::kFail) {
    verdict.expectation.emplace();
    verdict.expectation->metric = failure.metric;
    verdict.expectation->kind = CheckKind::kMax;
    verdict.expectation->source = "data sheet of " + failure.metric;
  }
  stage.verdicts.push_back(verdict);
}

void reject(Record& record, Acceptance acceptance = Acceptance::kRejected) {
  settle(record);
  record.acceptance = acceptance;
  record.exitCode = acceptance == Acceptance::kRejected ? 1 : 3;
  record.reasons = {"as its counts say"};
}

}  // namespace

const std::vector<FaultKind>& faultKinds() {
  static const std::vector<FaultKind> kinds = {
      {"slow", Urgency::kB, true, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"compute.gemm_throughput", gpu});
         add(r, {"compute.sustained_throughput", gpu});
       }},
      {"throttle", Urgency::kB, true, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"env.throttle_thermal", gpu});
         add(r, {"compute.gemm_throughput", gpu});
       }},
      {"ecc", Urgency::kA, true, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"env.ecc_uncorrected", gpu});
         add(r, {"env.row_remap_pending", gpu});
         add(r, {"env.xid_fatal", gpu, {{"xid", "XID 95"}}});
       }},
      {"lost", Urgency::kA, true, false,
       [](Record& r, const std::string& gpu) {
         add(r, {"env.xid_fatal", gpu, {{"xid", "XID 79"}}});
         add(r, {"", gpu, {}, Outcome::kError, gpu + ": fell off the bus"});
         add(r, {"env.unreadable_sources", "", {}, Outcome::kError, "driver of " + gpu});
       }},
      {"corruption", Urgency::kA, true, true,
       [](Record& r, const std::string& gpu) {
         add(r, {"compute.gemm_wrong_elements", gpu});
         add(r, {"compute.gemm_repeat_mismatches", gpu});
         add(r, {"", "", {}, Outcome::kSkipped, "prerequisite stage gemm failed"});
       }},
      {"hang", Urgency::kB, true, false,
       [](Record& r, const std::string& gpu) {
         add(r, {"", gpu, {}, Outcome::kError, gpu + ": made no progress for 20s and was killed"});
         add(r, {"compute.gemm_throughput", gpu, {}, Outcome::kError, "no measurement"});
       }},
      {"missing", Urgency::kA, false, true,
       [](Record& r, const std::string&) {
         add(r, {"env.device_count", ""});
       }},
      {"slow link", Urgency::kB, false, true,
       [](Record& r, const std::string& gpu) {
         const std::string other = gpu == "gpu0" ? "gpu1" : "gpu0";
         add(r, {"memory.peer_bandwidth", gpu, {{"peer", other}}});
         add(r, {"memory.peer_bandwidth", other, {{"peer", gpu}}});
       }},
      {"links of one GPU", Urgency::kB, true, true,
       [](Record& r, const std::string& gpu) {
         for (int i = 0; i < 8; ++i)
           if (const std::string other = fmt::format("gpu{}", i); other != gpu) {
             add(r, {"memory.peer_bandwidth", other, {{"peer", gpu}}});
             add(r, {"memory.peer_bandwidth", gpu, {{"peer", other}}});
           }
       }},
      {"port", Urgency::kB, false, true,
       [](Record& r, const std::string&) {
         add(r, {"env.rdma_link_downed", "", {{"port", "mlx5_3/1"}}});
       }},
  };
  return kinds;
}

FaultyFleet::FaultyFleet(unsigned seed) : random_(seed) {
  options_.topologyFrom = "racks.txt";
  for (int i = 0; i < kNodes; ++i) {
    options_.expected.push_back({nameOf(i), "", false});
    options_.topology[fmt::format("R{:02}", i / kOfRack)].push_back(nameOf(i));
  }
}

std::string FaultyFleet::nameOf(int node) {
  return fmt::format("n{:03}", node);
}

std::string FaultyFleet::placeOf(int node) {
  return fmt::format("R{:02}, slot {}", node / kOfRack, node % kOfRack + 1);
}

int FaultyFleet::pick() {
  for (;;)
    if (const int node = below(kNodes); faulty_.insert(node).second) return node;
}

Faults FaultyFleet::someOfEachKind() {
  Faults faults;
  for (const FaultKind& kind : faultKinds())
    for (int i = 0; i < 1 + below(2); ++i) faults[pick()] = {&kind, fmt::format("gpu{}", below(8))};
  return faults;
}

fleet::Fleet FaultyFleet::assess(const Faults& faults, const std::set<int>& absent) {
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

}  // namespace muster::testing
