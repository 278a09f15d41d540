// SPDX-License-Identifier: Apache-2.0
// Verdicts inside their stage: an expectation that many verdicts share is written once, so that a record
// stays small.
#pragma once

#include <string>

#include "reports/model/record.h"

namespace muster {

/// The stage's verdicts as JSON. `expectation` is an index into the stage's evidence.expectations where it
/// stands there; the stage's name, and a remedy that is the expectation's own, are left out.
Json foldedVerdicts(const StageRecord& stage);

/// Reads what foldedVerdicts wrote (and whole verdicts too). An index that leads nowhere is an error.
Result<Verdict> unfoldedVerdict(const Json& folded, const std::string& stage, const Json& expectations,
                                const std::string& path);

}  // namespace muster
