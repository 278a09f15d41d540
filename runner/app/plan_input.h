// SPDX-License-Identifier: Apache-2.0
// From plan files and --set arguments to plans, with every mistake in one error.
#pragma once

#include <string>
#include <vector>

#include "runner/plan/plan.h"

namespace muster {

Result<PlanOptions> planOptionsFrom(const std::vector<std::string>& sets);

/// The plan, or one usage error that holds every mistake, a line each.
Result<Plan> requirePlan(PlanOutcome outcome);

}  // namespace muster
