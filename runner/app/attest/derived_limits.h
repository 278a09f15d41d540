// SPDX-License-Identifier: Apache-2.0
// Whether the stages of a record are those that its plan and profile come to: tests, parameters, limits.
#pragma once

#include <string>
#include <vector>

#include "runner/metrics/catalog.h"
#include "runner/plan/plan.h"
#include "runner/record/record.h"
#include "runner/sku/profile.h"

namespace muster {

/// In what the record's stages, limits and peaks differ from what `plan` and `profile` (nullptr: unknown SKU)
/// come to on the devices of its inventory. Empty: in nothing. Both are of the record's own texts, so whoever
/// edits only a limit or leaves out only a device is found.
std::vector<std::string> limitDifferences(const Record& record, const Plan& plan, const Profile* profile,
                                          const Catalog& catalog);

}  // namespace muster
