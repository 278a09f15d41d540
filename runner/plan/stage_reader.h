// SPDX-License-Identifier: Apache-2.0
// One stage of a plan: its plugin and test, how it is run, its cases and expectations.
#pragma once

#include <string>

#include "runner/metrics/expectation_reader.h"
#include "runner/plan/cases.h"
#include "runner/plan/document.h"

namespace muster {

/// What every stage of a plan is checked against.
struct StageContext {
  const Catalog& catalog;
  std::string backend;  ///< the plan's; empty when it is wrong (told elsewhere)
  CaseBudget budget;
  ExpectationBudget expectations = {};
};

/// Reads the stage at `pointer` ("/stage/2", the third), telling every mistake. Needs are only taken over:
/// whether they name stages is checked once all are read.
Stage readStage(const PlanDocument& document, const std::string& pointer, size_t number,
                StageContext& context, Diagnostics& diagnostics);

/// Adds to a schema the keys of a stage that do not depend on its test.
void describeStage(TableSchema& schema);

}  // namespace muster
