// SPDX-License-Identifier: Apache-2.0
// `--set`: values of the command line in place of values of the plan file, before the plan is validated.
#pragma once

#include <vector>

#include "runner/plan/document.h"

namespace muster {

/// Writes each override into the document, where validation treats it as if the file said so. Returns the
/// arguments that were applied, for the record.
std::vector<std::string> applyOverrides(const std::vector<Override>& overrides, const Catalog& catalog,
                                        PlanDocument& document, Diagnostics& diagnostics);

}  // namespace muster
