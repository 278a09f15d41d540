// SPDX-License-Identifier: Apache-2.0
// Records that are set aside after all were read: those that lack a stage of their plan, and redacted copies.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"

namespace muster::fleet {

/// The order of quarantined files in reports.
void sortByPath(std::vector<Quarantined>& list);

/// What a node has to do in a stage, by its plan.
struct PlannedPart {
  StageState state = StageState::kRan;  ///< ran, idle, or skipped: the run has no group for it
  int nodes = 0;                        ///< of its group
};

/// The stages that records of one plan must hold, and those of them that it requires.
struct StagesOfPlan {
  std::vector<std::string> names;
  std::set<std::string> required;
  /// What node `rank` of `count` has to do in a stage.
  std::function<PlannedPart(const std::string& stage, int rank, int count)> part{};
};
/// By the digest of the plan.
using PlanStages = std::map<std::string, StagesOfPlan>;

/// Moves the records without a stage of their plan, with another one, or that call one optional, or
/// took no part in one without being held back, which their plan requires, to the quarantined. Of a plan that
/// is not in `stages`, what most of its records hold counts.
void setAsideIncomplete(FleetRecords& records, PlanStages stages);

/// Of files with the same bytes one counts, the first by path: a copy is no second run.
void setAsideCopies(FleetRecords& records);

/// Moves redacted records whose originals are here to the quarantined: one run counts once, by its original.
void setAsideRedacted(FleetRecords& records);

}  // namespace muster::fleet
