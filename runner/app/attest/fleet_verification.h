// SPDX-License-Identifier: Apache-2.0
// Verifies a fleet from its records: fleet.json and fleet.html are derived again.
#pragma once

#include "runner/app/attest/folder_verification.h"

namespace muster {

inline constexpr const char* kFleetName = "fleet.json";

/// Verifies the fleet in the folder `prefix` ("", "report/"). Its result takes the place of those of the runs
/// that it judged, all of which were verified before.
void verifyFleet(const VerifyTools& tools, const std::string& prefix, Verification& out,
                 FolderResult& result);

/// Leaves open where records that count name one machine or part as several nodes, also beyond a single
/// fleet.
void verifyIdentities(const VerifyTools& tools, const FolderResult& result, Verification& out);

/// The folder of its records as names in it begin ("records/"), by what the fleet says of itself.
std::string recordsOfFleet(const VerifyTools& tools, const std::string& prefix);

}  // namespace muster
