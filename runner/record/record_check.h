// SPDX-License-Identifier: Apache-2.0
// What must hold between the fields of a record: an edited or torn one must not read as an acceptance.
#pragma once

#include <string_view>

#include "runner/record/record.h"

namespace muster {

/// Devices of an inventory; of more, no record is read, here and in a fleet (ReadLimits).
inline constexpr size_t kMostInventoryDevices = 1'024;

/// Whether `path` stays inside the folder it is relative to: not empty, not absolute, no "..", no NUL, no
/// backslash.
bool isSafeRelativePath(std::string_view path);

/// The faulty component that the stage's group names; empty when it has no group or names none.
std::string faultyComponent(const StageRecord& stage);

/// How many nodes the stage's group has; 0: it has none, or says nothing that can be a number of nodes.
int groupNodesIn(const StageRecord& stage);

/// The id of a run of `node` that began at `started` (seconds since 1970). It is derived from both, so a
/// record whose node was renamed or whose start was changed no longer fits its id.
std::string runIdOf(const std::string& node, double started);

/// Whether `id` can be the one of this run. Ids that runIdOf() did not make (of older records) always can.
bool runIdFits(const std::string& id, const std::string& node, double started);

/// Whether a stage of this name is Muster's own: no plan has it.
bool isOwnStage(std::string_view name);

/// Why a stage cannot be idle on this node; empty: it can, or is not. Only a cluster stage's group leaves out
/// nodes, and only its last ones.
std::string idleContradiction(StageState state, Scope scope, int groupNodes, int nodeRank);

/// Whether these stages of a plan, without Muster's own, measured nothing and were left to no other job
/// because the node was idle in them: what then is known of the node accepts it nowhere.
bool isOnlyIdle(const std::vector<StageState>& states);
bool isOnlyIdle(const std::vector<StageRecord>& stages);

/// How the stages of a record differ from those that it must hold, for a sentence: "stage gemm of its plan is
/// missing"; empty: they do not. Muster's own stages ("muster:run") may be there beside them.
std::string stageDifference(std::vector<std::string> found, std::vector<std::string> wanted);

/// What a record says of its run as a whole, and what its stages hold.
struct RecordClaim {
  Acceptance acceptance = Acceptance::kIncomplete;
  int exitCode = 0;
  bool strict = false;
  bool simulated = false;
  std::string_view backend;
  std::string_view scenario;
  const std::string& runId;
  const std::string& node;
  double started = 0;
  int nodeRank = 0;
  int nodeCount = 0;
  bool partial = false;         ///< it names what --only or --device chose
  bool selectionStage = false;  ///< it holds the stage that then blocks acceptance
  bool onlyIdle = false;        ///< isOnlyIdle() of its stages
  const Accounting& said;
  Accounting found;
};

/// Why a record that claims this was edited or truncated: "accounting says 1 fail, the stages hold 2"; empty:
/// nothing contradicts it.
std::string contradictionIn(const RecordClaim& claim);

/// Refuses contradictions: a text of the plan that has another digest, counts that differ from the verdicts,
/// an acceptance with exit code or blocking outcomes that do not go with it, a stage that passed although its
/// group names a faulty component, a scenario or the backend sim without the mark SIMULATED, a run id of
/// another node or start. Also an inventory of more devices than a node has.
Status checkRecord(const Record& record);

/// The plan's permission for flaky stages is part of the evidence; without evidence there is none.
bool allowsFlaky(const StageRecord& stage);
/// What it comes to for tools that have no word for a flaky check which blocks nothing: a warning.
Outcome outcomeWithoutFlaky(const StageRecord& stage, const Verdict& verdict);
/// Whether the stage of each flaky verdict allows it, whatever else the stage found.
bool allowsEachFlaky(const std::vector<StageRecord>& stages);

}  // namespace muster
