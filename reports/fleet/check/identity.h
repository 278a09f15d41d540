// SPDX-License-Identifier: Apache-2.0
// Whether each node of a fleet is a machine of its own: no machine, part or run may count under two names.
#pragma once

#include <string>
#include <string_view>

#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Whether a serial, UUID or id tells one thing from all others. Vendors leave texts such as "To be filled by
/// O.E.M.", "0" or a UUID of zeros where there is none.
bool identifies(std::string_view value);

/// Looks for identities that two nodes share, and for records of one node that are of two machines, and adds
/// what it finds to fleet.findings. Call it when the nodes have their records. Nodes that share an identity
/// are incomplete and the fleet is rejected: one of their records is wrong, and nothing tells which. A node
/// whose own records contradict each other is rejected.
///
/// - A run id, the serial or UUID of a device, and a boot id each tell by themselves that two records are of
///   one run, part or machine.
/// - Board, product and management controller tell together: two machines that differ in one of these are
/// two.
///   What three or more machines have in common, though their parts or machine ids differ, is no serial.
/// - A machine id alone tells nothing: machines that were installed from one image share it. It is noted.
/// - Records of a scenario have the identities that the scenario gives; the host that simulated them is none.
///
/// Records that do not count are looked at too where they are of the same run: a node must not be accepted by
/// the record of another one that is not expected.
RecordChecks checkIdentities(const FleetRecords& records, const FleetOptions& options, const FleetRun& run,
                             FleetNodes& nodes);

}  // namespace muster::fleet
