// SPDX-License-Identifier: Apache-2.0
// From which rank the wrong data of a collective came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/checks/collective_values.h"
#include "kernels/interfaces/communicator.h"

namespace muster {

/// What the ranks of a group need to ask each other. All of them call the same in the same order.
class RankExchange {
 public:
  virtual ~RankExchange() = default;
  /// This rank's own input at `index`.
  virtual Result<double> inputAt(uint64_t index) = 0;
  /// Runs kAllGather, or kAllToAll without another rank between, over plain bytes in blocks of equal size.
  virtual Status exchange(CollectiveOp op, std::span<const std::byte> sent,
                          std::span<std::byte> received) = 0;
};

/// Sets source and inputRight of `own`, from what all ranks put in behind its first wrong element. They tell
/// it over the same network: what arrives damaged counts as not known. The source is the first of these:
/// - this rank itself, if it alone expects other inputs than all others have;
/// - of a reduction the only rank whose input is wrong, of data that were only moved their owner, if its is;
/// - the only rank whose answer arrives damaged;
/// - the owner, if several others send to this rank without a relay, and all wrong elements came from it.
///
/// By the last two its link may be faulty, or the one at this end: others must say the same.
/// kCorrupt where no result is wrong, and what ranks tell each other about it arrives damaged.
Status findWrongSource(const CollectiveSpec& spec, const ExactValues& values, int rank,
                       RankExchange& exchange, CollectiveMismatch& own);

}  // namespace muster
