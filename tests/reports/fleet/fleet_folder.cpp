// SPDX-License-Identifier: Apache-2.0
// See fleet_folder.h.
#include "tests/reports/fleet/fleet_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

#include "runner/record/evidence_json.h"
#include "runner/system/files.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster::testing {

namespace {

/// How ids begin that a FleetFolder makes those of runs of their own.
constexpr const char* kRunOf = "run-of-";

}  // namespace

Record nodeRecord(const std::string& name) {
  static const Record healthy = healthyRecord();
  Record record = healthy;
  record.node = name;
  record.runId = kRunOf + name;
  record.nodeRank = 0;
  record.nodeCount = 1;
  giveParts(record, name);
  return record;
}

void givePlan(Record& record, const std::string& text) {
  record.plan.text = text;
  record.plan.sha256 = sha256Hex(text);
}

void giveParts(Record& record, const std::string& seed) {
  for (Json& device : record.inventory["devices"]) {
    const std::string digest = sha256Hex(seed + device.value("id", ""));
    device["uuid"] = fmt::format("GPU-{}-{}-{}-{}-{}", digest.substr(0, 8), digest.substr(8, 4),
                                 digest.substr(12, 4), digest.substr(16, 4), digest.substr(20, 12));
    device["serial"] = "1652" + std::to_string(std::stoull(digest.substr(32, 8), nullptr, 16) % 1000000000);
  }
}

Record failedRecord(const std::string& name, const std::string& device) {
  Record record = nodeRecord(name);
  for (StageRecord& stage : record.stages)
    for (Verdict& verdict : stage.verdicts)
      if (verdict.device == device && verdict.expectation && record.acceptance == Acceptance::kAccepted) {
        verdict.outcome = Outcome::kFail;
        verdict.detail = device + ": too slow";
        record.acceptance = Acceptance::kRejected;
      }
  settle(record);
  record.exitCode = 1;
  record.reasons = {"1 requirement was not met"};
  return record;
}

void keepEvidence(StageRecord& stage) {
  StageEvidence evidence;
  std::set<std::string> known;
  for (const Verdict& verdict : stage.verdicts)
    if (verdict.expectation && known.insert(toJson(*verdict.expectation).dump()).second)
      evidence.expectations.push_back(*verdict.expectation);
  std::set<std::pair<std::string, int>> ended;
  for (const Measurement& m : stage.measurements) {
    evidence.caseMetrics[m.caseId].insert(m.metric);
    evidence.caseLabels[m.caseId];
    if (ended.emplace(m.caseId, m.rank).second) {
      CaseEnd& end = evidence.ends.emplace_back();
      end.caseId = m.caseId;
      end.rank = m.rank;
      end.state = CaseEnd::State::kOk;
    }
  }
  stage.evidence = evidenceToJson(evidence);
}

void measureInventory(Record& record) {
  constexpr const char* kInventory = "muster:inventory";
  auto stage = std::find_if(record.stages.begin(), record.stages.end(),
                            [&](const StageRecord& one) { return one.name == kInventory; });
  if (stage == record.stages.end()) {
    stage = record.stages.emplace(stage);
    stage->name = kInventory;
    stage->scope = Scope::kNode;
    stage->state = StageState::kRan;
    stage->outcome = Outcome::kPass;
  }
  stage->measurements.clear();
  const auto measure = [&](const char* metric, const char* unit, const std::string& device) -> Measurement& {
    Measurement& m = stage->measurements.emplace_back();
    m.metric = metric;
    m.unit = unit;
    m.caseId = kInventory;
    m.device = device;
    if (!device.empty()) m.labels["device"] = device;
    m.informational = true;
    return m;
  };
  const Json& devices = record.inventory["devices"];
  measure("env.device_count", "count", "").samples = {static_cast<double>(devices.size())};
  for (const Json& device : devices) {
    const std::string id = device.value("id", "");
    measure("env.device_name", "text", id).text = device.value("name", "");
    measure("env.device_memory", "B", id).samples = {device.value("memory_bytes", 0.0)};
  }
  keepEvidence(*stage);
}

void joinGroup(StageRecord& stage, int node, int nodes) {
  constexpr int kRanks = 8;
  stage.scope = Scope::kCluster;
  stage.group = {
      {"world_size", kRanks * nodes}, {"first_rank", kRanks * node}, {"nodes", nodes}, {"culprit", ""}};
  const auto move = [&](auto& entries) {
    for (auto& entry : entries)
      if (entry.rank >= 0) entry.rank += kRanks * node;
  };
  move(stage.ranks);
  move(stage.verdicts);
  move(stage.measurements);
}

StageRecord metStage(const std::string& name, const std::vector<std::string>& nodes, int number, int ranks,
                     const std::string& id) {
  const auto count = static_cast<int>(nodes.size());
  StageRecord stage;
  stage.name = name;
  stage.plugin = "collective";
  stage.test = "sweep";
  stage.scope = Scope::kCluster;
  stage.state = StageState::kRan;
  stage.cases.push_back({name, Json::object()});
  stage.group = {{"world_size", count * ranks},
                 {"first_rank", number * ranks},
                 {"nodes", count},
                 {"id", id},
                 {"culprit", ""}};
  for (int other = 0; other < count; ++other)
    if (const int away = std::abs(other - number); std::min(away, count - away) <= 4)
      stage.group["around"].push_back({{"node_rank", other},
                                       {"node", nodes[static_cast<size_t>(other)]},
                                       {"first_rank", other * ranks},
                                       {"ranks", ranks}});
  stage.evidence = {{"expectations", Json::array()}};
  for (int i = 0; i < ranks; ++i) {
    RankRecord rank;
    rank.rank = number * ranks + i;
    rank.device = fmt::format("gpu{}", i);
    rank.state = RankOutcome::kOk;
    stage.ranks.push_back(rank);
    Verdict verdict;
    verdict.outcome = Outcome::kPass;
    verdict.stage = verdict.caseId = name;
    verdict.rank = rank.rank;
    verdict.device = rank.device;
    verdict.observed = verdict.limit = verdict.margin = std::nan("");
    stage.verdicts.push_back(verdict);
  }
  return stage;
}

void skipOptional(StageRecord& stage) {
  stage.required = false;
  stage.state = StageState::kSkipped;
  stage.reason = "not needed";
  stage.group = Json();
  stage.ranks.clear();
  stage.measurements.clear();
  Verdict skipped;
  skipped.outcome = Outcome::kSkipped;
  skipped.required = false;
  skipped.detail = "not needed";
  stage.verdicts = {skipped};
}

Verdict slowLink(Verdict passed, const std::string& peer) {
  passed.outcome = Outcome::kFail;
  passed.metric = "rdma.line_rate_share";
  passed.labels = {{"path", "pair"}, {"peer", peer}, {"port", "mlx5_0/1"}};
  passed.observed = 1;
  passed.limit = 0;
  passed.detail = "gpu0: 60%, required at least 90%";
  return passed;
}

void leaveElsewhere(Record& record, const std::string& name) {
  for (StageRecord& stage : record.stages) {
    if (stage.name != name) continue;
    stage.state = StageState::kElsewhere;
    stage.reason = std::string("its scope is ") + nameOf(stage.scope);
    stage.measurements.clear();
    Verdict verdict;
    verdict.outcome = Outcome::kElsewhere;
    verdict.stage = name;
    verdict.observed = verdict.limit = verdict.margin = std::nan("");
    stage.verdicts = {verdict};
  }
  settle(record);
}

void FleetFolder::add(Record record, const std::string& path) {
  if (record.runId.starts_with(kRunOf)) record.runId += fmt::format("-{}", ++runs_);
  folder_.write((path.empty() ? record.node : path) + "/record.json", recordText(record));
}

fleet::Fleet FleetFolder::assess(const std::vector<std::string>& expected) {
  fleet::FleetOptions options;
  for (const std::string& name : expected) options.expected.push_back({name, "", false});
  return assess(options);
}

fleet::Fleet FleetFolder::assess(const fleet::FleetOptions& options) {
  auto records = fleet::readFleet(path());
  EXPECT_TRUE(records.ok()) << (records.ok() ? "" : records.error().text());
  if (!records.ok()) return {};
  records_ = std::move(*records);
  auto fleet = fleet::assess(records_, options);
  EXPECT_TRUE(fleet.ok()) << (fleet.ok() ? "" : fleet.error().text());
  return fleet.ok() ? std::move(*fleet) : fleet::Fleet{};
}

const fleet::FleetNode& nodeOf(const fleet::Fleet& fleet, const std::string& name) {
  static const fleet::FleetNode none;
  const auto at =
      std::find_if(fleet.nodes.begin(), fleet.nodes.end(), [&](const auto& n) { return n.name == name; });
  EXPECT_NE(at, fleet.nodes.end()) << name;
  return at == fleet.nodes.end() ? none : *at;
}

}  // namespace muster::testing
