// SPDX-License-Identifier: Apache-2.0
// The largest of small values over the ranks of a group, where one may change what it sends or passes on.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/interfaces/communicator.h"
#include "runner/core/result.h"

namespace muster {

/// What a rank says that does not get what others sent, or hears that another rank does not.
Error damagedOnItsWay(bool here);

/// Leaves in each place the largest that any rank has there, bit for bit. All ranks call it in the same
/// order.
using Maximum = std::function<Status(std::span<double> values)>;

/// The largest of each value over all ranks, with the upper 32 bits of its mantissa: whole numbers below 2^33
/// are exact. The others tell whether it arrived as it was sent. If not on any rank, it is kCorrupt on all,
/// so that none goes on without the others. One that is damaged and smaller than another rank's is not seen,
/// as it does not count. No rank sends what is not finite: one that has such a value ends in an error of its
/// own and leaves the others, and one that arrives is damaged.
Result<std::vector<double>> largestOverRanks(const std::vector<double>& values, const Maximum& maximum);

/// Communicator::maxOverRanks() of values that are each of one rank: those in the places `own` of this one,
/// all others 0. kCorrupt on all ranks where one of a rank's own comes back otherwise than it was told (no
/// rank speaks for another one), or where one is over 2^1000, as sums of such values need not be finite.
Result<std::vector<double>> gatherOverRanks(Communicator& communicator, const std::vector<double>& values,
                                            const std::vector<bool>& own);

}  // namespace muster
