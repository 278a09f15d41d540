// SPDX-License-Identifier: Apache-2.0
// The expectations that a plan gives one of its stages, checked against what that stage measures.
#pragma once

#include <string>

#include "runner/plan/document.h"
#include "runner/plan/stage_reader.h"

namespace muster {

/// Reads the list `expect` of the stage at `pointer` into `stage.expectations`, off the budget of `context`.
/// `test` is the stage's test, or nullptr when it is not known (told elsewhere); the stage's cases are read
/// already.
void readStageExpectations(const PlanDocument& document, const std::string& pointer, StageContext& context,
                           const TestSpec* test, Stage& stage, Diagnostics& diagnostics);

}  // namespace muster
