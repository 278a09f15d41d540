// SPDX-License-Identifier: Apache-2.0
// The command that measures a finding again: as small as its limits allow, and none where none would do.
#include "runner/record/findings/rerun.h"

#include <gtest/gtest.h>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

/// A finding on gpu5 of the stage gemm, with one expectation of this kind.
struct Case {
  explicit Case(CheckKind kind) {
    record.rerun = {"muster", "run", "/my plans/node.toml"};
    record.inventory["devices"] = {{{"id", "gpu4"}}, {{"id", "gpu5"}}};
    stage.name = "gemm";
    verdict.device = "gpu5";
    verdict.expectation.emplace();
    verdict.expectation->kind = kind;
    finding.items = {{&verdict, &stage, nullptr}};
  }
  [[nodiscard]] std::string command() const { return rerunCommand(record, finding); }

  Record record;
  StageRecord stage;
  Verdict verdict;
  Deviation finding;
};

TEST(RerunCommand, NamesStageAndDevice) {
  EXPECT_EQ(Case(CheckKind::kMin).command(), "muster run '/my plans/node.toml' --only gemm --device gpu5");
}

TEST(RerunCommand, NeedsAllDevicesWhereTheLimitComparesThem) {
  EXPECT_EQ(Case(CheckKind::kWithin).command(), "muster run '/my plans/node.toml' --only gemm");
  Case ofNode(CheckKind::kMin);
  ofNode.stage.scope = Scope::kNode;
  EXPECT_EQ(ofNode.command(), "muster run '/my plans/node.toml' --only gemm");
  Case ofUnknown(CheckKind::kMin);
  ofUnknown.verdict.device = "gpu9";
  EXPECT_EQ(ofUnknown.command(), "muster run '/my plans/node.toml' --only gemm");
}

TEST(RerunCommand, TakesTheDeviceThatAlsoMissedALimitOfItsOwn) {
  Case both(CheckKind::kWithin);
  Verdict own = both.verdict;
  own.expectation->kind = CheckKind::kMin;
  both.finding.items.push_back({&own, &both.stage, nullptr});
  EXPECT_EQ(both.command(), "muster run '/my plans/node.toml' --only gemm --device gpu5");
}

TEST(RerunCommand, IsNoneWhereNoPartialRunMeasuresItAgain) {
  Case inventory(CheckKind::kMin), skipped(CheckKind::kMin), cluster(CheckKind::kMin), old(CheckKind::kMin);
  inventory.stage.name = "muster:inventory";
  skipped.stage.state = StageState::kSkipped;
  cluster.stage.scope = Scope::kCluster;
  cluster.record.nodeCount = 2;
  old.record.rerun.clear();
  for (const Case* one : {&inventory, &skipped, &cluster, &old}) EXPECT_EQ(one->command(), "");
}

}  // namespace
}  // namespace muster
