// SPDX-License-Identifier: Apache-2.0
// One [[fault]] of a scenario file.
#pragma once

#include "kernels/sim/scenario/scenario.h"
#include "runner/core/toml/toml_table.h"

namespace muster::sim {

/// Reads one fault; each kind takes only its own keys. Devices and network of the scenario are known already.
/// `nodes`: how many the run has, 0 if that is not known; a fault beyond them is an error.
Fault readFault(TomlTable table, const Scenario& scenario, int nodes);

/// Complains of a fault whose `key` names node number `node` of a run that has fewer.
void checkFaultNode(TomlTable& table, const char* key, int node, int nodes);

}  // namespace muster::sim
