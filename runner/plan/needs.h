// SPDX-License-Identifier: Apache-2.0
// The `needs` between stages: they name stages of the plan, once each, and never in a circle.
#pragma once

#include "runner/plan/document.h"

namespace muster {

/// Checks the needs of all stages; `pointers[i]` is where stage i stands in the document.
void checkNeeds(const PlanDocument& document, const std::vector<Stage>& stages,
                const std::vector<std::string>& pointers, Diagnostics& diagnostics);

}  // namespace muster
