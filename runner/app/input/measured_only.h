// SPDX-License-Identifier: Apache-2.0
// The one check before anything is done to real hardware, or kept about it, because of a result.
#pragma once

#include <filesystem>
#include <string>

#include "runner/core/result.h"

namespace muster {

/// kUsage where the result is simulated. `action`: "drain nodes"; `from`: the run that was asked about.
inline Status requireMeasured(bool simulated, const std::string& action, const std::filesystem::path& from) {
  if (!simulated) return {};
  return Error{ErrorCode::kUsage,
               "this run is SIMULATED: no hardware was measured, so it cannot " + action +
                   "; run the plan without --simulate first",
               from.string()};
}

}  // namespace muster
