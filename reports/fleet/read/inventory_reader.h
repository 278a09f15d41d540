// SPDX-License-Identifier: Apache-2.0
// A record's inventory -> device identities and flat facts that can be compared between nodes.
#pragma once

#include "reports/fleet/read/dom_fields.h"
#include "reports/fleet/read/record_stream.h"
#include "reports/fleet/read/stage_reader.h"

namespace muster::fleet {

/// The longest name or value of a fact; the rest is cut off.
inline constexpr size_t kFactBytes = 200;

/// Fills devices and facts of `node`. What names one machine or moment alone (host name, serial, UUID,
/// addresses, uptime) is no fact to compare. At most a thousand facts are kept.
void readInventory(const dom::object& inventory, NodeSummary& node, StageReader& names,
                   const ReadLimits& limits, Failures& failures);

}  // namespace muster::fleet
