// SPDX-License-Identifier: Apache-2.0
// Which rank put in what made a collective's result wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/checks/collective_values.h"
#include "kernels/interfaces/communicator.h"

namespace muster {

/// What each rank tells the others once it compared its result.
struct WrongResult {
  uint64_t elements = 0;    ///< that are wrong
  uint64_t firstInput = 0;  ///< index of the inputs behind the first of them
};
/// How the ranks of a group tell each other: called by all of them alike.
class RankExchange {
 public:
  virtual ~RankExchange() = default;
  virtual Result<std::vector<WrongResult>> results(const WrongResult& own) = 0;
  /// Every rank's input at `index`.
  virtual Result<std::vector<double>> inputs(uint64_t index) = 0;
};
/// Whose input is behind the first wrong element of `rank`'s result, by asking for the inputs themselves; -1:
/// nothing is wrong, all inputs are right (then arithmetic, a link or a receiver damaged the data), or it
/// cannot be told. Called by all ranks of the group; an index out of range is an error.
Result<int> findWrongSource(const CollectiveSpec& spec, const ExactValues& values, int rank,
                            const CollectiveMismatch& own, RankExchange& exchange);

}  // namespace muster
