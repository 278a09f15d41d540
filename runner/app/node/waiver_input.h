// SPDX-License-Identifier: Apache-2.0
// Waivers on their way from a file into a record: read, checked against the plan, settled at the end.
#pragma once

#include <filesystem>
#include <optional>

#include "runner/app/stage/stage_runner.h"
#include "runner/judge/waivers.h"
#include "runner/plan/plan.h"

namespace muster {

/// The stage that holds one error for each waiver that matched nothing.
inline constexpr const char* kWaiverStage = "muster:waivers";

/// Reads a waiver file; mistakes and expired waivers (at `now`, seconds since 1970) are kUsage.
Result<Waivers> readWaivers(const std::filesystem::path& path, double now);

/// The waivers that a run was started with, from its journal's first line. They are judged by the date on
/// which it was started.
Result<Waivers> waiversOf(const Json& frozen);

/// Every stage that a waiver names must be in the plan, and every metric one that a plugin declares.
Status checkAgainstPlan(const Waivers& waivers, const Plan& plan, const Catalog& catalog);

/// The record's node with the serials of its devices.
WaivedNode waivedNode(const Record& record);

/// Puts into `record` what became of each waiver. The stage of those that matched nothing, if there are any:
/// its errors block acceptance.
std::optional<StageOutcome> settleWaivers(Record& record, const Waivers& waivers);

}  // namespace muster
