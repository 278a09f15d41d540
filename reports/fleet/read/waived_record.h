// SPDX-License-Identifier: Apache-2.0
// What waivers make of one record: those that it holds itself, and its acceptance under those of the fleet.
#pragma once

#include "reports/fleet/read/dom_fields.h"
#include "reports/fleet/read/name_table.h"
#include "reports/fleet/read/node_summary.h"
#include "runner/judge/judge.h"

namespace muster::fleet {

/// Adds the waivers under which the record was made to `node.waivers`, but for those that the fleet was given
/// itself. At most a thousand.
void readOwnWaivers(const dom::object& record, FleetNames& names, NodeSummary& node, Failures& failures);

/// Moves what the fleet's waivers cover from the failures of the record to the waived ones, and decides again
/// whether the node is accepted. Nothing changes where they cover nothing. `flakyAllowed`: by the stages of
/// the flaky verdicts.
void decideWaived(NodeSummary& node, bool flakyAllowed);

/// What the record would come to with these counts instead of its own.
Decision decideAnew(const NodeSummary& node, const Accounting& sum);

}  // namespace muster::fleet
