// SPDX-License-Identifier: Apache-2.0
// Plans from text against the sample catalogue, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runner/plan/plan.h"

namespace muster::testing {

/// A plan on the host backend with one stage "gemm" (compute.gemm); `lines` follow from line 8 on.
std::string gemmPlan(const std::string& lines);

PlanOutcome parseToml(const std::string& text, const std::vector<std::string>& overrides = {});
PlanOutcome parseLua(const std::string& text, const std::vector<std::string>& overrides = {});

/// Every diagnostic, one per line; empty when there is none.
std::string problemsOf(const PlanOutcome& outcome);

/// The plan, or a failed test and an empty plan.
Plan planOf(const PlanOutcome& outcome);

/// Everything that a plan says, without the places and the text of its file.
std::string modelOf(const Plan& plan);

/// What is expected of one piece of a plan.
struct Golden {
  std::string input;
  std::string problems;
};

/// Checks that gemmPlan(input) has exactly those problems.
void expectProblems(const std::vector<Golden>& all);

}  // namespace muster::testing
