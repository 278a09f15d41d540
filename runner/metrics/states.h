// SPDX-License-Identifier: Apache-2.0
// How stages, ranks and whole runs ended: the words that plans, records and reports share.
#pragma once

#include <array>

#include "runner/core/names.h"

namespace muster {

/// What one group of a stage's ranks is: each device alone, all devices of a node, or those of all nodes.
enum class Scope { kDevice, kNode, kCluster };
constexpr std::array<const char*, 3> namesOf(Scope) {
  return {"device", "node", "cluster"};
}

/// Whether a stage ran here at all. Idle: its group is one of other nodes, as the plan says.
enum class StageState { kRan, kSkipped, kElsewhere, kError, kIdle };
constexpr std::array<const char*, 5> namesOf(StageState) {
  return {"ran", "skipped", "elsewhere", "error", "idle"};
}

/// How the process of one rank ended.
enum class RankOutcome { kOk, kError, kTimeout, kAbandoned, kCancelled };
constexpr std::array<const char*, 5> namesOf(RankOutcome) {
  return {"ok", "error", "timeout", "abandoned", "cancelled"};
}

/// How a whole node stands; of a whole fleet, one of the first three. Partial: only a part of the plan was
/// asked for, and it passed.
enum class Acceptance { kAccepted, kRejected, kIncomplete, kInterrupted, kNoGpu, kPartial };
constexpr std::array<const char*, 6> namesOf(Acceptance) {
  return {"accepted", "rejected", "incomplete", "interrupted", "no-gpu", "partial"};
}

}  // namespace muster
