// SPDX-License-Identifier: Apache-2.0
// What must be judged of a stage, listed before anything is judged: each slot becomes exactly one verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/judge/evidence_index.h"

namespace muster {

/// One thing to give a verdict on. With `fixed` the outcome is known already; else `expectation` is checked
/// on `group`.
struct Slot {
  const CaseRank* caseRank = nullptr;
  const Group* group = nullptr;
  const Expectation* expectation = nullptr;
  std::optional<Outcome> fixed{};
  std::string detail{};    ///< of a fixed outcome
  std::string remedy{};    ///< of a fixed outcome, where it is not the expectation's
  std::string caseId{};    ///< where there is no case rank: what the slot is about; empty: the stage
  std::string device{};    ///< of a device that should have been measured and was not
  bool anonymous = false;  ///< `detail` says itself what it is about: nothing of this node is at fault
};

/// Lists the slots of a stage that ran. The rules are those of judge.h.
std::vector<Slot> listSlots(const EvidenceIndex& index);

/// Whether a case with these known labels may report a measurement that carries all of `where`. A list
/// parameter allows each of its items: `numa` ("near,far") as label `numa`, `ops` ("copy,triad") as label
/// `op`.
bool canCarry(const Labels& known, const Labels& where);

/// Whether an expectation is about another size of group than this one of a sweep: a larger one, or one that
/// the sweep has. No other is excused.
bool isOfOtherGroup(const Expectation& e, const StageEvidence& evidence);

}  // namespace muster
