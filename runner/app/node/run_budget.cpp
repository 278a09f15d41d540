// SPDX-License-Identifier: Apache-2.0
// See run_budget.h.
#include "runner/app/node/run_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {

Status checkBudget(const Plan& plan, const RunOptions& options, int nodes) {
  if (options.budget <= 0 || nodes == 1) return {};
  for (const Stage& stage : plan.stages)
    if (stage.scope == Scope::kCluster && options.runsStage(stage))
      return Error{
          ErrorCode::kUsage,
          fmt::format("--budget: stage {} needs all {} nodes at the same time, and each node has a time "
                      "of its own; add --scope device,node",
                      stage.name, nodes),
          plan.path.string()};
  return {};
}

bool RunBudget::postpones(const Stage& stage, double elapsed, bool mayRun) {
  const bool ends = seconds_ <= 0 || stage.timeout * stage.attempts <= seconds_ - elapsed;
  if (!isSpent() && (ends || !mayRun)) return false;
  postponed_.push_back(stage.name);
  return true;
}

std::string RunBudget::whySkipped() const {
  return fmt::format("no time was left for it (--budget {})", formatQuantity(seconds_, "s"));
}

std::string RunBudget::reason() const {
  return fmt::format("the time budget of {} (--budget) ended before {}; resume the run",
                     formatQuantity(seconds_, "s"), printable(join(postponed_, ", "), 1000));
}

std::string RunBudget::whatIsLeft(const Plan& plan, const std::string& resumeCommand) const {
  const auto next = std::find_if(plan.stages.begin(), plan.stages.end(),
                                 [&](const Stage& stage) { return stage.name == postponed_.front(); });
  return fmt::format(
      "not run yet: {}; stage {} needs a budget of at least {} (its timeout); continue with {} --budget "
      "DURATION",
      printable(join(postponed_, ", "), 1000), next->name,
      formatQuantity(next->timeout * next->attempts, "s"), resumeCommand);
}

}  // namespace muster
