// SPDX-License-Identifier: Apache-2.0
// One hostile plan through everything that `muster check` does with it, and what must hold of the outcome.
#pragma once

#include <string>

#include "runner/plan/plan.h"

namespace muster::testing {

/// Checks a TOML plan. The text that comes back is empty, or says what does not hold.
std::string checkTomlPlan(const std::string& text);
/// Checks a Lua plan, evaluated in a child as always, with bounds that suit many small plans.
std::string checkLuaPlan(const std::string& text);
/// The same without a child process, where a fuzzer sees which code runs.
std::string checkLuaPlanHere(const std::string& text);

}  // namespace muster::testing
