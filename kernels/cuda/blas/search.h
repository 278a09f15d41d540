// SPDX-License-Identifier: Apache-2.0
// Finds the fastest of many candidates by running them: briefly all, then the fastest few at length.
#pragma once

#include <cstddef>
#include <functional>

#include "runner/core/result.h"

namespace muster::cuda {

/// `seconds(candidate, runs)` times that many runs of one candidate, after one that is not timed; a candidate
/// that cannot run is kUnsupported and left out. An error where none can.
Result<size_t> fastest(size_t candidates, const std::function<Result<double>(size_t, int)>& seconds);

}  // namespace muster::cuda
