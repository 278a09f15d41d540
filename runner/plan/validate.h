// SPDX-License-Identifier: Apache-2.0
// From a document to the typed plan: the one validation that both languages share.
#pragma once

#include "runner/plan/document.h"

namespace muster {

/// Reads the whole document, telling every mistake. The plan is meaningful only without errors.
/// `skus`: the profiles that `sku` may name beside "auto"; empty: any name passes.
Plan validatePlan(const PlanDocument& document, const Catalog& catalog, const std::vector<std::string>& skus,
                  Diagnostics& diagnostics);

}  // namespace muster
