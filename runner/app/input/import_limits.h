// SPDX-License-Identifier: Apache-2.0
// What an imported stage must meet besides the limits of plan and profile: the same when it is imported and
// when it is judged again.
#pragma once

#include "runner/judge/judge.h"
#include "runner/record/record.h"
#include "runner/sku/profile.h"

namespace muster {

/// The case of a tool's file as a whole; its label `nodes` is on how many nodes the tool ran.
inline constexpr const char* kToolCase = "tool";

/// On how many nodes an imported stage ran; in records of earlier versions by the cases of the tool alone.
int importedNodes(const StageEvidence& evidence);

/// Completes a stage whose limits of plan and profile are known: every device of the SKU's nodes takes part,
/// no rate is above what they can do, and a limit covers a measured value. What an earlier call found of
/// rates and limits is taken back. `profile` is nullptr where the SKU is unknown.
void applyImportLimits(const Profile* profile, StageEvidence& evidence);

/// kUsage at `where` if one of these devices is not of the profile, which would judge it by the limits of
/// another GPU. `subject`: what they are in.
Status checkDeviceNames(const Profile& profile, const std::vector<std::string>& names,
                        const std::string& subject, const std::string& where);

bool isGood(Outcome outcome);

/// Why the tool, which judges `limits`, and Muster come to different results.
std::string differenceText(const std::string& limits, const StageRecord& stage);

/// What differed when the result was `before`, for the result of now: the tool's verdict is still the same.
void compareAgain(const StageRecord& stage, Outcome before, ImportedRecord& item);

}  // namespace muster
