// SPDX-License-Identifier: Apache-2.0
// See plan_input.h.
#include "runner/app/plan_input.h"

#include <fmt/format.h>

namespace muster {

Result<PlanOptions> planOptionsFrom(const std::vector<std::string>& sets) {
  PlanOptions options;
  for (const std::string& argument : sets) {
    MUSTER_TRY(Override parsed, parseOverride(argument));
    options.overrides.push_back(std::move(parsed));
  }
  return options;
}

Result<Plan> requirePlan(PlanOutcome outcome) {
  std::string text;
  size_t mistakes = 0;
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    if (diagnostic.warning) continue;
    text += (mistakes++ == 0 ? "" : "\n") + diagnostic.text();
  }
  if (mistakes == 0 && outcome.plan) return *std::move(outcome.plan);
  if (mistakes > 1) text += fmt::format("\n{} mistakes; nothing was run", mistakes);
  return Error{ErrorCode::kUsage, text, ""};
}

}  // namespace muster
