// SPDX-License-Identifier: Apache-2.0
// A wrong block shows who should have sent it, not who damaged it: only its owner's input tells.
#include "kernels/checks/wrong_source.h"

#include <algorithm>
#include <map>

namespace muster {
namespace {

/// Whose input differs, from every rank's input at one index as `rank` sees it: that of the block's `owner`;
/// of a reduction (-1) one that differs alone. Where those of all others do, it is this rank that expects
/// something else; `othersKept` is false where a collective in place overwrote them.
int wrongInput(const ExactValues& values, uint64_t index, const std::vector<double>& inputs, int rank,
               int owner, bool othersKept) {
  std::vector<int> different;
  for (int other = 0; other < values.ranks(); ++other)
    if (!(inputs[static_cast<size_t>(other)] == values.input(other, index))) different.push_back(other);
  const auto differs = [&](int other) {
    return std::find(different.begin(), different.end(), other) != different.end();
  };
  const bool allOthers =
      othersKept && inputs.size() > 2 && different.size() == inputs.size() - 1 && !differs(rank);
  if (allOthers) return rank;
  if (owner >= 0) return differs(owner) ? owner : -1;
  return different.size() == 1 ? different[0] : -1;
}

}  // namespace

Result<int> findWrongSource(const CollectiveSpec& spec, const ExactValues& values, int rank,
                            const CollectiveMismatch& own, RankExchange& exchange) {
  WrongResult mine;
  Origin origin;
  if (own.wrong > 0) {
    origin = originOf(spec, rank, values.ranks(), own.firstElement);
    mine = {own.wrong, origin.index};
  }
  MUSTER_TRY(const std::vector<WrongResult> all, exchange.results(mine));
  std::map<uint64_t, std::vector<double>> inputs;  // ranks are often wrong at the same index
  int source = -1;
  for (size_t other = 0; other < all.size(); ++other) {
    if (all[other].elements == 0) continue;
    if (all[other].firstInput >= spec.sendCount(values.ranks()))
      return Error{
          ErrorCode::kProtocol,
          "a rank told of a wrong element that no input has: what ranks tell each other arrives damaged",
          collectiveOpName(spec.op)};
    // A reduction in place used its inputs up: nothing is left to look at.
    if (spec.inPlace && reduces(spec.op)) return -1;
    const auto [at, fresh] = inputs.try_emplace(all[other].firstInput);
    if (fresh) {
      MUSTER_TRY(at->second, exchange.inputs(at->first));
    }
    if (static_cast<int>(other) == rank)
      source = wrongInput(values, at->first, at->second, rank, origin.rank, !spec.inPlace);
  }
  return source;
}

}  // namespace muster
