// SPDX-License-Identifier: Apache-2.0
// The parameters that a stage ran with -> facts of the node: what its values depend on beside its hardware.
#pragma once

#include "reports/fleet/read/dom_fields.h"
#include "reports/fleet/read/stage_reader.h"

namespace muster::fleet {

/// The name of such a fact begins with it: "stage sustained: duration".
inline constexpr std::string_view kStageFact = "stage ";

/// Adds the parameters that all cases of a stage have alike; those by which they differ are part of the names
/// of the cases. Lists are left out: what they cover is in the labels of the measurements. With the inventory
/// a record has 2,000 facts at most.
void readParameters(const dom::object& stage, NodeSummary& node, StageReader& names);

}  // namespace muster::fleet
