// SPDX-License-Identifier: Apache-2.0
// Which stages run over several nodes, which node each record was in that run (most records say so, and not
// one alone), and what such stages left unmeasured.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// The stages, by their numbers in FleetNames::texts, that most of the nodes with a record hold with scope
/// cluster. What another record says of others in a stage of its own counts for its own node only.
std::set<uint32_t> clusterStages(const FleetRecords& records, const FleetNodes& nodes);

/// The number of nodes that most records of runs with several nodes give, by the fleet's id. Nothing where
/// they do not agree.
std::map<std::string, int> nodeCounts(const FleetRecords& records, const FleetNodes& nodes);

/// What to do about records that cannot all be of one run.
inline constexpr const char* kRunTogether =
    "Run the plan on all nodes together once more, and check who could write the records.";

/// The names of the fleet's nodes.
std::set<std::string> namesOf(const FleetNodes& nodes);

/// Names each node that gives another number of nodes than most of its run (runsOf()).
RecordChecks checkNodeCounts(const FleetRecords& records, FleetNodes& nodes);

/// Nodes that claim what only one of them can have been.
struct Clash {
  std::set<std::string> nodes;
  std::string text;
};

/// Those that claim one number of a run: what the others say of them would not reach them. A record that ran
/// with others and tells no group may be of any run. `manyRuns`: nothing is known of it.
std::vector<Clash> numberClashes(const FleetRecords& records, const FleetNodes& nodes, bool manyRuns);

struct GroupGaps {
  std::vector<std::string> reasons;  ///< why the fleet is not accepted
  std::vector<std::string> notes;    ///< what --many-runs lets pass: everything but a node that met no other
};

/// Stages of scope cluster whose groups were smaller than the fleet, never met each other, lack the sizes
/// that the plan asks for, or have no record of their first node, which holds what all measured together.
GroupGaps findGroupGaps(const FleetRecords& records, const FleetOptions& options, const FleetNodes& nodes);

}  // namespace muster::fleet
