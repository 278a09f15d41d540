// SPDX-License-Identifier: Apache-2.0
// `--budget`: how long one start of a run may take, and the stages that it leaves no time for.
#pragma once

#include <string>
#include <vector>

#include "runner/app/node/options.h"
#include "runner/core/result.h"
#include "runner/plan/plan.h"

namespace muster {

/// Fails when --budget could end the run of one node before a stage that the others begin.
Status checkBudget(const Plan& plan, const RunOptions& options, int nodes);

class RunBudget {
 public:
  /// `seconds` 0: any number.
  explicit RunBudget(double seconds) : seconds_(seconds) {}

  /// Whether `stage` is left to a later start: its attempts might not end in time, `elapsed` seconds after
  /// this start. After the first such stage none begins, as later ones may rely on it, whether they say so or
  /// not; before, only one that `mayRun` is postponed.
  bool postpones(const Stage& stage, double elapsed, bool mayRun);

  [[nodiscard]] const std::vector<std::string>& postponed() const { return postponed_; }
  [[nodiscard]] bool isSpent() const { return !postponed_.empty(); }
  /// Why a postponed stage was skipped, for its own record.
  [[nodiscard]] std::string whySkipped() const;
  /// Why the run is not complete, for its record. Only of a budget that is spent.
  [[nodiscard]] std::string reason() const;
  /// Which stages are left, and how to run them. Only of a budget that is spent.
  [[nodiscard]] std::string whatIsLeft(const Plan& plan, const std::string& resumeCommand) const;

 private:
  double seconds_;
  std::vector<std::string> postponed_;
};

}  // namespace muster
