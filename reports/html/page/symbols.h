// SPDX-License-Identifier: Apache-2.0
// One symbol for each outcome and acceptance: colour is never the only sign.
#pragma once

#include <string>

#include "runner/metrics/states.h"
#include "runner/metrics/verdict.h"

namespace muster {

const char* outcomeSymbol(Outcome outcome);
const char* acceptanceSymbol(Acceptance acceptance);

/// One sentence that says what the acceptance means; `waived` failures are never passed over.
std::string acceptanceMeaning(Acceptance acceptance, size_t waived);

}  // namespace muster
