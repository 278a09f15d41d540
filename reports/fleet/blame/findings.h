// SPDX-License-Identifier: Apache-2.0
// The order of findings, the gravest first, and those that share a cause put together as one.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// How grave a failure of this metric is.
FindingClass gradeOf(const DeviationSummary& deviation, const FleetNames& names);

/// Puts what belongs to a node that is behind as a whole beneath that node's finding: its devices, its rails
/// and its links. Only what is about speed: a wrong result or a missing part stays a finding of its own.
std::vector<Suspect> foldSlowNodes(std::vector<Suspect> suspects, const FleetNodes& nodes);

/// Suspects in order, the gravest first; those that name the same part are one.
struct OrderedSuspects {
  std::vector<Suspect> list;
  size_t left = 0;  ///< those beyond
};
inline constexpr size_t kMostJudged = 20'000;  ///< suspects that decide what becomes of nodes
void cutTo(size_t most, OrderedSuspects& suspects);

/// At most kMostJudged. Also marks the nodes that they name, and no others.
OrderedSuspects orderSuspects(std::vector<Suspect> suspects, FleetNodes& nodes);

/// Whether a failed part may be why a group failed: by what failed in the same stage, of wrong data only by
/// wrong data or hardware errors there; anything else also by what ranks located in one of `stages`, those of
/// several nodes.
bool explains(const Suspect& part, const Suspect& group, const std::set<std::string>& stages);

}  // namespace muster::fleet
