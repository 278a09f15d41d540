// SPDX-License-Identifier: Apache-2.0
// Records that are set aside after all were read: those that lack a stage of their plan, and redacted copies.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"

namespace muster::fleet {

/// The order of quarantined files in reports.
void sortByPath(std::vector<Quarantined>& list);

/// The stages that records of one plan must hold, and those of them that it requires.
struct StagesOfPlan {
  std::vector<std::string> names;
  std::set<std::string> required;
  std::set<std::string> swept{};  ///< of those with several numbers of nodes a run may have no group
};
/// By the digest of the plan.
using PlanStages = std::map<std::string, StagesOfPlan>;

/// Moves the records without a stage of their plan, with another one, or that call one optional, or
/// skipped it without being held back, which their plan requires, to the quarantined. Of a plan that is not
/// in `stages`, what most of its records hold counts.
void setAsideIncomplete(FleetRecords& records, const PlanStages& stages);

/// Of files with the same bytes one counts, the first by path: a copy is no second run.
void setAsideCopies(FleetRecords& records);

/// Moves redacted records whose originals are here to the quarantined: one run counts once, by its original.
void setAsideRedacted(FleetRecords& records);

}  // namespace muster::fleet
