// SPDX-License-Identifier: Apache-2.0
// The order of findings, the gravest first, and those that share a cause put together as one.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// How grave a failure of this metric is.
FindingClass gradeOf(const DeviationSummary& deviation, const FleetNames& names);

/// Puts what belongs to a node that is behind as a whole beneath that node's finding: its devices, its rails
/// and its links. Only what is about speed: a wrong result or a missing part stays a finding of its own.
void foldSlowNodes(Fleet& fleet);

/// Puts the suspects in order, the gravest first, merges those that name the same part, and marks their
/// nodes.
void orderSuspects(Fleet& fleet);

}  // namespace muster::fleet
