// SPDX-License-Identifier: Apache-2.0
// Coverage: which records count for which expected node, and in which one state each node is.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// The expected nodes, and what of the records is theirs.
struct Coverage {
  FleetRun run;
  FleetNodes nodes;
  std::vector<LeftOut> duplicates;
  std::vector<LeftOut> stale;
  std::vector<LeftOut> foreign;
  std::vector<LeftOut> withoutRecord;
  std::vector<std::string> notes;
};

/// States rest on what the nodes' own records say; fleet-relative expectations come later. kUsage for an
/// expectation that names a node twice or none at all.
Result<Coverage> cover(const FleetRecords& records, const FleetOptions& options);

}  // namespace muster::fleet
