// SPDX-License-Identifier: Apache-2.0
// Delta acceptance: after parts of an accepted fleet were replaced, which nodes must run again, and which
// record of each node counts. Pure: records in, decisions out.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"
#include "reports/history/store/kept_fleet.h"

namespace muster::history {

/// What a record is read for.
enum class RecordUse {
  kAccepted,  ///< of the accepted fleet
  kRerun,     ///< of a run after the replacement, under the same plan
  kSurvey,    ///< of any plan: it only says which parts a node has now
};

/// A node of which a new run left no record that counts, as the run's folder tells.
struct UnrecordedNode {
  std::string node;
  std::string why;  ///< one line
};

/// All records that were read. `uses` has one entry for each of records.nodes; records.quarantined are new
/// ones.
struct DeltaInput {
  KeptFleet accepted;
  std::vector<fleet::Quarantined> unreadable;  ///< of the accepted fleet
  fleet::FleetRecords records;
  std::vector<RecordUse> uses;
  /// New ones without a record; their paths are as a user types them.
  std::vector<fleet::InterruptedRun> interruptedRuns;
  std::vector<UnrecordedNode> unrecorded;
  /// A new run that ended later, in seconds since 1970, shows that a clock is wrong.
  double latest = std::numeric_limits<double>::infinity();
};

/// A part that is another one, or elsewhere, than when the fleet was accepted.
struct PartChange {
  std::string device;  ///< "gpu3": its place in the node
  std::string before;  ///< serial, or UUID where it has none; empty: there was none
  std::string after;   ///< empty: there is none
  std::string from;    ///< "n4 gpu1": where the new one was when the fleet was accepted; empty: nowhere in it

  /// "gpu3: S3 replaced by S9".
  [[nodiscard]] std::string text() const;
};

enum class DeltaState {
  kKept,   ///< its accepted records count
  kRerun,  ///< its records after the replacement count
  kNeeds,  ///< it must run again: without that there is no acceptance
};

struct DeltaNode {
  std::string name;
  DeltaState state = DeltaState::kKept;
  std::string why;                 ///< kNeeds: one line
  std::vector<PartChange> parts;   ///< what was replaced
  std::vector<std::string> facts;  ///< software that is another: "driver: 580.95 -> 590.10"
  std::vector<size_t> records;     ///< that count, indices into DeltaInput::records.nodes
};

struct Delta {
  std::vector<DeltaNode> nodes;         ///< in the order of the accepted fleet
  std::vector<std::string> mismatches;  ///< what does not belong together; nothing is merged then
  std::vector<std::string> notTaken;    ///< new records that add nothing, with the reason
  std::vector<std::string> notes;       ///< what could not be told

  [[nodiscard]] std::vector<std::string> needing() const;  ///< names of the nodes that must run again
};

/// Holds new records against an accepted fleet. A node keeps its accepted records while nothing speaks of
/// another part or driver in it. It is taken from the new run where it has records there. It must run again
/// when
/// - a newer record, or a part that turned up in another node, shows that it changed, and it was not run
/// since;
/// - a new run of it left no record;
/// - its new runs were of different parts or software;
/// - an inventory scan that says it is older than the acceptance shows other parts: its clock may be wrong;
/// - one of its accepted records is gone or was edited.
/// Mismatches: a record of another plan, profile or kind (simulated), of a node that the fleet does not have,
/// older than the acceptance, less strict, unreadable, of a cluster stage that met no other node; one part in
/// two nodes.
Delta planDelta(const DeltaInput& input);

}  // namespace muster::history
