// SPDX-License-Identifier: Apache-2.0
// Which records are of one run of several nodes: runs that are alike in all else have other groups.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"

namespace muster::fleet {

/// By index into `records.nodes`, the run of each record: equal for those that met in any group, whatever
/// else they say. Two groups are of one run if the records of two nodes say that they were in both: one alone
/// joins nothing. A record that met nobody belongs to the only run that lacks its node, of those of its fleet
/// id and number of nodes where nobody else was met by its number. Empty where that does not tell.
/// `expected`: the nodes whose word counts; empty: of all.
std::vector<std::string> runsOf(const FleetRecords& records, const std::set<std::string>& expected = {});

}  // namespace muster::fleet
