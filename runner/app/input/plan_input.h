// SPDX-License-Identifier: Apache-2.0
// From plan files and --set arguments to plans, with every mistake in one error.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runner/dispatch/plugins.h"
#include "runner/plan/plan.h"
#include "runner/sku/profile.h"

namespace muster {

/// The profiles that come along, and those of further folders, which take the place of one of equal name.
/// `catalog` may be null: then metrics and labels are not held against it. `found`: the mistakes of a profile
/// that is refused.
Result<std::map<std::string, Profile>> allProfiles(const Tree& tree,
                                                   const std::vector<std::filesystem::path>& extra,
                                                   const Catalog* catalog,
                                                   std::vector<Complaint>* found = nullptr);

/// Fails for the name of no profile, with the nearest; "auto" is one.
Status checkSkuName(const std::string& sku, const std::map<std::string, Profile>& profiles);

/// How a plan is to be read: with these --set arguments, and `sku` one of these profiles.
Result<PlanOptions> planOptionsFrom(const std::vector<std::string>& sets,
                                    const std::map<std::string, Profile>& profiles);

/// The plan, or one usage error that holds every mistake, a line each.
Result<Plan> requirePlan(PlanOutcome outcome);

}  // namespace muster
