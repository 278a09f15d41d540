// SPDX-License-Identifier: Apache-2.0
// See reboot_stage.h.
#include "runner/app/node/reboot_stage.h"

namespace muster {

StageOutcome rebootStage(const std::string& before, const std::string& now) {
  StageRecord stage;
  stage.name = "muster:run";
  stage.scope = Scope::kNode;
  StageEvidence evidence;
  evidence.stage = stage.name;
  evidence.caseMetrics["boot"] = {"run.boot_id"};
  evidence.ends.push_back({"boot", 0, "", 1, CaseEnd::State::kOk, "", ""});
  Measurement boot;
  boot.metric = "run.boot_id";
  boot.unit = "text";
  boot.text = now;
  boot.caseId = "boot";
  evidence.measurements.push_back(boot);
  Expectation same;
  same.metric = boot.metric;
  same.kind = CheckKind::kEquals;
  same.unit = "text";
  same.allowed = {before};
  same.origin = "standing";
  same.remedy = "The node rebooted during the run: check its system log and power supply before use";
  evidence.expectations.push_back(same);
  const Accounting accounting = judgeInto(stage, evidence, {});
  stage.measurements = evidence.measurements;
  return {stage, accounting};
}

}  // namespace muster
