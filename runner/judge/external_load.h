// SPDX-License-Identifier: Apache-2.0
// Which missed limits external load explains: how much slower a healthy device gets when others use its CPUs.
#pragma once

#include <string>

#include "runner/judge/check.h"

namespace muster {

/// The share of its rate that a healthy device still reaches while others hold `share` of the CPU time of its
/// processors: (1 - share) (1 - share / 2). The first factor is the CPU time that is left. The second is for
/// threads that wait for one another: little load costs twice its share at most. So a trivial load excuses a
/// trivial miss only. From a quarter on it is a hundredth: threads that meet after each short step wait a
/// scheduler's time slice, many times the step, for the one that lost its processor.
double attainableUnderLoad(double share);

/// Why the miss `result` of a device on the host backend may not be its fault, or an empty text. Only what is
/// measured against the clock (times, and rates per second) can be explained, never a count, a wrong result,
/// or a value that is not worse than its limit in the direction of slowness. `together`: it is the figure of
/// several ranks that wait for one another at each step. Such a step waits for the last of them to get its
/// CPU, so once others hold half of the CPU time no size of a miss tells anything.
std::string explainedByLoad(const Expectation& expectation, const Group& group, const CheckResult& result,
                            const ExternalLoad& load, bool together = false);

}  // namespace muster
