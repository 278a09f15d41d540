// SPDX-License-Identifier: Apache-2.0
// The guard: starts the rank below itself and leaves no process behind when the rank, the run or the runner
// ends.
#pragma once

#include <functional>

namespace muster {

/// What a guard works with.
struct GuardOptions {
  int lifeline = -1;         ///< end-of-file means that the runner is gone; -1: none
  int report = -1;           ///< where the guard reports; -1: nowhere
  int forRank = -1;          ///< a descriptor that only the rank keeps; -1: none
  double grace = 2;          ///< seconds between TERM and KILL
  double abandonAfter = 10;  ///< seconds of KILL after which survivors are abandoned
};

/// Forks a child that runs `rank` and ends with its value as exit code. Once the child has ended, TERM came,
/// QUIT came (then there is no grace), or the lifeline closed, ends every process below: TERM, after the
/// grace KILL again and again, reaping all the while. Returns the exit code for this process: the rank's, 128
/// + its signal, or 125 when a survivor was abandoned.
int runGuarded(const GuardOptions& options, const std::function<int()>& rank);

}  // namespace muster
