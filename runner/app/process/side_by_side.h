// SPDX-License-Identifier: Apache-2.0
// Parts of a command that do not need each other, on all CPUs at once.
#pragma once

#include <functional>
#include <vector>

#include "runner/core/result.h"

namespace muster {

/// Calls `work` for 0 to `count` - 1, each in a process of its own and as many at a time as there are CPUs,
/// and returns their exit codes in that order. What they print to stdout comes out as if one ran after the
/// other. After an error or an interruption none is begun any more: those that are at work end first, and
/// the error is the first by number. All end with the caller's process.
Result<std::vector<int>> runSideBySide(int count, const std::function<Result<int>(int)>& work);

}  // namespace muster
