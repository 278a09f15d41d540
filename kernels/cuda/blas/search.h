// SPDX-License-Identifier: Apache-2.0
// Finds the fastest of many candidates by running them: briefly all, then the fastest few at length.
#pragma once

#include <cstddef>
#include <functional>

#include "runner/core/result.h"

namespace muster::cuda {

/// `seconds(candidate, runs)` times that many runs of one candidate, after one that is not timed. A candidate
/// that fails is left out as long as the device goes on, which `usable` tells. An error where all fail:
/// kUnsupported only if that is the error of each.
Result<size_t> fastest(size_t candidates, const std::function<Result<double>(size_t, int)>& seconds,
                       const std::function<Status()>& usable);

}  // namespace muster::cuda
