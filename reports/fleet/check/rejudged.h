// SPDX-License-Identifier: Apache-2.0
// Records that `muster judge` made: whether they count, and whether they fit the records they were made from.
#pragma once

#include <map>
#include <string>

#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Records that do not count because a re-judgement of them with the same samples does, with the reason; by
/// their indices. Empty where re-judged records do not count.
std::map<size_t, std::string> supersededRecords(const FleetRecords& records, const FleetOptions& options);

/// Adds a finding for each re-judged record of an expected node that may not count, or whose samples differ
/// from those of a record of the same run.
RecordChecks checkRejudged(const FleetRecords& records, const FleetOptions& options, FleetNodes& nodes);

}  // namespace muster::fleet
