// SPDX-License-Identifier: Apache-2.0
// Names of collectives and reductions, and the arithmetic of their bandwidths.
#include "kernels/interfaces/communicator.h"

#include <array>
#include <utility>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr std::array kReduceNames = {"sum", "prod", "min", "max", "avg"};
constexpr std::array kCollectiveNames = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                                         "alltoall",   "gather",     "scatter",        "sendrecv"};

/// The place of `name` among `names`, which are in the order of their enumeration.
template <size_t N>
Result<size_t> placeOf(std::string_view name, const std::array<const char*, N>& names, const char* what) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) return i;
  const std::vector<std::string> wanted(names.begin(), names.end());
  return Error{ErrorCode::kUsage,
               std::string("unknown ") + what + " \"" + printable(name, 40) + "\", expected one of " +
                   join(wanted, ", ") + didYouMean(name, wanted),
               ""};
}

}  // namespace

const char* reduceOpName(ReduceOp op) {
  return kReduceNames[static_cast<size_t>(op)];
}

Result<ReduceOp> reduceOpFromName(std::string_view name) {
  MUSTER_TRY(size_t place, placeOf(name, kReduceNames, "reduction"));
  return static_cast<ReduceOp>(place);
}

const char* collectiveOpName(CollectiveOp op) {
  return kCollectiveNames[static_cast<size_t>(op)];
}

Result<CollectiveOp> collectiveOpFromName(std::string_view name) {
  MUSTER_TRY(size_t place, placeOf(name, kCollectiveNames, "collective"));
  return static_cast<CollectiveOp>(place);
}

bool countsPerRank(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAllToAll:
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return true;
    default:
      return false;
  }
}

bool reduces(CollectiveOp op) {
  return op == CollectiveOp::kAllReduce || op == CollectiveOp::kReduceScatter || op == CollectiveOp::kReduce;
}

bool hasRoot(CollectiveOp op) {
  return op == CollectiveOp::kBroadcast || op == CollectiveOp::kReduce || op == CollectiveOp::kGather ||
         op == CollectiveOp::kScatter;
}

bool worksInPlace(CollectiveOp op) {
  return op != CollectiveOp::kAllToAll && op != CollectiveOp::kSendRecv;
}

uint64_t CollectiveSpec::bytes(int ranks) const {
  const uint64_t own = count * dtypeBits(dtype) / 8;
  return countsPerRank(op) ? own * static_cast<uint64_t>(ranks) : own;
}

double CollectiveSpec::busFactor(int ranks) const {
  const double n = ranks;
  if (op == CollectiveOp::kAllReduce) return 2 * (n - 1) / n;
  return countsPerRank(op) ? (n - 1) / n : 1;
}

uint64_t CollectiveSpec::sendCount(int ranks) const {
  const bool everyRanks =
      op == CollectiveOp::kReduceScatter || op == CollectiveOp::kAllToAll || op == CollectiveOp::kScatter;
  return everyRanks ? count * static_cast<uint64_t>(ranks) : count;
}

uint64_t CollectiveSpec::receiveCount(int ranks) const {
  const bool everyRanks =
      op == CollectiveOp::kAllGather || op == CollectiveOp::kAllToAll || op == CollectiveOp::kGather;
  return everyRanks ? count * static_cast<uint64_t>(ranks) : count;
}

Status checkSpec(const CollectiveSpec& spec, int ranks) {
  const std::string name = collectiveOpName(spec.op);
  if (spec.count == 0)
    return Error{ErrorCode::kUsage, "a collective of no elements, expected 1 or more", name};
  if (hasRoot(spec.op) && (spec.root < 0 || spec.root >= ranks))
    return Error{ErrorCode::kUsage,
                 "there is no root " + std::to_string(spec.root) + " in a group of " + std::to_string(ranks),
                 name};
  if (spec.inPlace && !worksInPlace(spec.op))
    return Error{ErrorCode::kUsage, "has no form in place; run it out of place", name};
  return {};
}

}  // namespace muster
