// SPDX-License-Identifier: Apache-2.0
// Records that somebody edited so that their counts still agree: no command takes one for an acceptance.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "tests/e2e/fleet_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Counts, outcomes and acceptance as the verdicts have them now.
void settleCounts(Record& record) {
  record.accounting = {};
  for (StageRecord& stage : record.stages) {
    stage.outcome = Outcome::kPass;
    for (const Verdict& verdict : stage.verdicts) {
      record.accounting.add(verdict);
      stage.outcome = std::min(stage.outcome, verdict.outcome);
    }
  }
  record.accounting.expected = record.accounting.total();
  record.acceptance = Acceptance::kAccepted;
  record.exitCode = 0;
  record.reasons.clear();
}

/// A fleet of three nodes; `edit` changes the record of the second one, on which gpu5 is slow.
class ForgedRecord : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    fleet_ = new FleetRun;
    ASSERT_EQ(fleet_->simulate(3, slowFault("node = 1\ndevice = 5", 0.8)).exitCode, 1);
    original_ = new std::string(readWhole(file()));
  }
  static void TearDownTestSuite() {
    delete fleet_;
    delete original_;
  }
  static fs::path file() { return fleet_->path() / "run/sim-node-0001/record.json"; }

  /// Nothing accepts the edited record, and each says why; `judge` where what is left comes to another
  /// result.
  static void expectRefused(const std::function<void(Record&)>& edit, bool isJudgedOtherwise = true) {
    std::ofstream(file()) << *original_;
    auto record = readRecord(file());
    ASSERT_TRUE(record.ok());
    edit(*record);
    settleCounts(*record);
    std::ofstream(file()) << recordText(*record);
    const auto report = runMuster({"report", file().string()});
    EXPECT_EQ(report.exitCode, 2) << report.out;
    const auto judge = runMuster({"judge", file().string()});
    EXPECT_EQ(judge.exitCode != 0, isJudgedOtherwise) << judge.out;
    const auto history =
        runMuster({"history", "add", file().string(), "--db", (fleet_->path() / "history.sqlite").string()});
    EXPECT_EQ(history.exitCode, 3) << history.out << history.err;
    const auto fleet = fleet_->judge(3);
    EXPECT_NE(fleet.exitCode, 0) << fleet.out;
    EXPECT_THAT(fleet_->json().dump(), HasSubstr("edited")) << fleet.out;
  }

  static FleetRun* fleet_;
  static std::string* original_;
};
FleetRun* ForgedRecord::fleet_ = nullptr;
std::string* ForgedRecord::original_ = nullptr;

StageRecord& gemmOf(Record& record) {
  return *std::find_if(record.stages.begin(), record.stages.end(),
                       [](const StageRecord& stage) { return stage.name == "gemm"; });
}

TEST_F(ForgedRecord, LacksAStageOfItsPlan) {
  expectRefused([](Record& r) { std::erase_if(r.stages, [](const auto& s) { return s.name == "gemm"; }); });
  expectRefused([](Record& r) { r.stages.resize(1); });
  expectRefused([](Record& r) {
    gemmOf(r).verdicts.clear();
    std::erase_if(r.stages, [](const auto& s) { return s.name == "muster:inventory"; });
  });
}

/// A skip blocks acceptance wherever the plan requires the stage.
TEST_F(ForgedRecord, SkippedAStageOfItsPlanWithoutBeingHeldBack) {
  const auto skip = [](Record& r) {
    StageRecord& stage = gemmOf(r);
    stage.state = StageState::kSkipped;
    stage.reason = "it was not needed";
    stage.telemetry.clear();
    stage.measurements.clear();
    stage.ranks.clear();
    stage.verdicts.resize(1);
    Verdict& only = stage.verdicts.front();
    only = Verdict();
    only.stage = stage.name;
    only.outcome = Outcome::kSkipped;
    only.required = false;
    only.detail = stage.reason;
    for (Json& part : stage.evidence)
      if (part.is_array()) part = Json::array();
    stage.evidence["state"] = "skipped";
    stage.evidence["reason"] = stage.reason;
    stage.evidence["required"] = false;
  };
  expectRefused(skip, false);
}

TEST_F(ForgedRecord, HoldsAnotherTextOfItsPlan) {
  expectRefused([](Record& r) {
    std::erase_if(r.stages, [](const auto& s) { return s.name == "gemm"; });
    r.plan.text = r.plan.text.substr(0, r.plan.text.rfind("[[stage]]"));
  });
}

/// Every failure, as `outcome`.
void makeAll(Record& record, Outcome outcome) {
  for (StageRecord& stage : record.stages)
    for (Verdict& verdict : stage.verdicts)
      if (verdict.outcome == Outcome::kFail) verdict.outcome = outcome;
}

TEST_F(ForgedRecord, SaysAnotherOutcomeThanItsFigures) {
  for (const Outcome outcome : {Outcome::kPass, Outcome::kWaived, Outcome::kWarn, Outcome::kElsewhere,
                                Outcome::kDeferred, Outcome::kUnjudged}) {
    SCOPED_TRACE(outcomeName(outcome));
    expectRefused([&](Record& r) { makeAll(r, outcome); });
  }
}

TEST_F(ForgedRecord, SaysOtherFiguresThanItsSamplesAndItsExpectation) {
  expectRefused([](Record& r) {
    for (StageRecord& stage : r.stages)
      for (Verdict& verdict : stage.verdicts)
        if (verdict.outcome == Outcome::kFail) {
          verdict.outcome = Outcome::kPass;
          verdict.limit = verdict.observed * 0.97;
          verdict.margin = 0.03;
        }
  });
}

TEST_F(ForgedRecord, LacksAVerdictOrADevice) {
  expectRefused([](Record& r) {
    for (StageRecord& stage : r.stages)
      std::erase_if(stage.verdicts, [](const Verdict& v) { return v.outcome == Outcome::kFail; });
  });
}

void keepEnds(StageRecord& stage, const std::function<bool(const Json& end)>& isKept) {
  Json kept = Json::array();
  for (const Json& end : stage.evidence["ends"])
    if (isKept(end)) kept.push_back(end);
  ASSERT_FALSE(kept.empty());
  stage.evidence["ends"] = kept;
}

/// However much is taken away with its results, the stage's own evidence still asks for it.
TEST_F(ForgedRecord, LacksMeasurementsWithTheirCheckResults) {
  const auto take = [](Record& r, const std::function<bool(const std::string& metric, int rank)>& isTaken) {
    StageRecord& stage = gemmOf(r);
    stage.telemetry.clear();
    std::erase_if(stage.measurements, [&](const Measurement& m) { return isTaken(m.metric, m.rank); });
    std::erase_if(stage.verdicts, [&](const Verdict& v) { return isTaken(v.metric, v.rank); });
  };
  const std::string slow = "compute.gemm_throughput";
  expectRefused([&](Record& r) { take(r, [](const auto&, int) { return true; }); });
  expectRefused([&](Record& r) { take(r, [](const auto&, int rank) { return rank == 5; }); });
  expectRefused([&](Record& r) { take(r, [&](const auto& metric, int) { return metric == slow; }); });
  expectRefused(
      [&](Record& r) { take(r, [&](const auto& metric, int rank) { return metric == slow && rank == 5; }); });
  expectRefused([&](Record& r) {
    take(r, [](const auto&, int) { return true; });
    gemmOf(r).evidence["ends"] = Json::array();
  });
  expectRefused([&](Record& r) {
    take(r, [](const auto&, int) { return true; });
    gemmOf(r).evidence.erase("ends");
  });
  const auto takeRank = [&](Record& r) {
    take(r, [&](const auto&, int rank) { return rank == 5; });
    std::erase_if(gemmOf(r).ranks, [](const RankRecord& rank) { return rank.rank == 5; });
    keepEnds(gemmOf(r), [](const Json& end) { return end["rank"] != 5; });
  };
  expectRefused(takeRank, false);
  expectRefused([&](Record& r) {  // whose cases say that they ended in error
    take(r, [&](const auto&, int rank) { return rank == 5; });
    for (Json& end : gemmOf(r).evidence["ends"])
      if (end["rank"] == 5) end["state"] = "error";
  });
  // Cases are called unsupported, on one rank or on all, and the stage one that may be skipped.
  for (const bool ofAll : {false, true})
    expectRefused(
        [&](Record& r) {
          StageRecord& stage = gemmOf(r);
          const auto isTaken = [&](int rank) { return ofAll || rank == 5; };
          take(r, [&](const auto&, int rank) { return isTaken(rank); });
          stage.required = false;
          stage.evidence["required"] = false;
          for (Json& end : stage.evidence["ends"]) {
            if (end["case"] != "gemm" || !isTaken(end["rank"].get<int>())) continue;
            end["state"] = "unsupported";
            Verdict& skip = stage.verdicts.emplace_back();
            skip.stage = stage.name;
            skip.caseId = "gemm";
            skip.rank = end["rank"].get<int>();
            skip.device = "gpu" + std::to_string(skip.rank);
            skip.outcome = Outcome::kSkipped;
            skip.required = false;
            skip.detail = "unsupported";
          }
        },
        ofAll);
  expectRefused([](Record& r) {  // one of its cases
    StageRecord& stage = gemmOf(r);
    stage.telemetry.clear();
    std::erase_if(stage.measurements, [](const Measurement& m) { return m.caseId == "gemm"; });
    std::erase_if(stage.verdicts, [](const Verdict& v) { return v.caseId == "gemm"; });
    keepEnds(stage, [](const Json& end) { return end["case"] != "gemm"; });
  });
}

/// A stage of scope device has as many ranks as its plan states.
TEST(HonestRecord, OfAStageWithFewerRanksThanDevicesCounts) {
  FleetRun fleet;
  const auto plan = fleet.write("two.toml", std::string(kFleetPlan) +
                                                "[[stage]]\nname = \"two\"\ntest = "
                                                "\"compute.gemm\"\nscope = \"device\"\nranks = 2.0\n");
  const auto run = runMuster({"run", plan.string(), "--simulate", scenario("h100x8-healthy"), "--nodes", "3",
                              "--plain", "--out", (fleet.path() / "run").string()});
  ASSERT_EQ(run.exitCode, 0) << run.out << run.err;
  EXPECT_EQ(runMuster({"report", (fleet.path() / "run/sim-node-0001/record.json").string()}).exitCode, 0);
  EXPECT_EQ(fleet.judge(3).exitCode, 0) << fleet.json().dump();
}

/// The fleet judges few records again: who changes samples to fit is told by the commands that look at one
/// record.
TEST_F(ForgedRecord, IsJudgedAgainBeforeItIsShownOrKept) {
  std::ofstream(file()) << *original_;
  auto record = readRecord(file());
  ASSERT_TRUE(record.ok());
  for (StageRecord& stage : record->stages)
    for (Verdict& verdict : stage.verdicts) {
      if (verdict.outcome != Outcome::kFail) continue;
      verdict.outcome = Outcome::kPass;
      verdict.observed = verdict.limit * 1.02;
      verdict.margin = 0.02;
      for (Measurement& m : stage.measurements)
        if (m.metric == verdict.metric && m.device == verdict.device && m.caseId == verdict.caseId)
          m.samples.front() = verdict.observed * 1.01;
    }
  settleCounts(*record);
  std::ofstream(file()) << recordText(*record);
  const std::string why = "its check results do not match its samples: ";
  const auto report = runMuster({"report", file().string()});
  EXPECT_EQ(report.exitCode, 2) << report.out;
  EXPECT_THAT(report.err, HasSubstr(why));
  const auto history =
      runMuster({"history", "add", file().string(), "--db", (fleet_->path() / "history.sqlite").string()});
  EXPECT_EQ(history.exitCode, 3) << history.out;
  EXPECT_THAT(history.err, HasSubstr(why));
  const auto learn = runMuster({"baseline", "learn", (fleet_->path() / "run").string(), "-o",
                                (fleet_->path() / "learned.toml").string(), "--allow-simulated"});
  EXPECT_EQ(learn.exitCode, 2) << learn.out;
  EXPECT_THAT(learn.err, HasSubstr(why));
}

/// A majority of forged records must not have the others rejected.
TEST(ForgedInventory, ThatItsOwnMeasurementsContradictHasNoVote) {
  const std::vector<std::function<void(Json&)>> edits = {
      [](Json& devices) {
        for (int i = 0; i < 40; ++i) devices.push_back({{"id", "x" + std::to_string(i)}, {"kind", "gpu"}});
      },
      [](Json& devices) {
        for (Json& device : devices) device["name"] = "NVIDIA B200";
      },
      [](Json& devices) {
        for (Json& device : devices) device["memory_bytes"] = 192'000'000'000;
      },
      [](Json& devices) { devices.erase(devices.size() - 1); },
      [](Json& devices) { devices = Json::array({devices[0]}); },
      [](Json& devices) { devices.clear(); }};
  FleetRun fleet;
  ASSERT_EQ(fleet.simulate(3, "").exitCode, 0);
  ASSERT_EQ(fleet.judge(3).exitCode, 0);
  std::vector<std::string> originals;
  for (int n = 0; n < 2; ++n)
    originals.push_back(readWhole(fleet.path() / fmt::format("run/sim-node-000{}/record.json", n)));
  for (const auto& edit : edits) {
    for (int n = 0; n < 2; ++n) {
      Json record = Json::parse(originals[static_cast<size_t>(n)]);
      edit(record["inventory"]["devices"]);
      std::ofstream(fleet.path() / fmt::format("run/sim-node-000{}/record.json", n)) << record.dump();
    }
    EXPECT_EQ(fleet.judge(3).exitCode, 3);
    const Json json = fleet.json();
    for (const Json& node : json["nodes"])
      EXPECT_EQ(node["state"], node["node"] == "sim-node-0002" ? "accepted" : "quarantined") << node["node"];
    EXPECT_THAT(json.dump(), HasSubstr("the record's inventory"));
  }
}

}  // namespace
}  // namespace muster::testing
