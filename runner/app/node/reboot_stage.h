// SPDX-License-Identifier: Apache-2.0
// The stage that says whether a node rebooted between two starts of one run.
#pragma once

#include <string>

#include "runner/app/stage/stage_runner.h"

namespace muster {

/// A node that rebooted is not healthy, whatever its stages say. `before` and `now` are its boot ids.
StageOutcome rebootStage(const std::string& before, const std::string& now);

}  // namespace muster
