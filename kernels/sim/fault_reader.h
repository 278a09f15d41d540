// SPDX-License-Identifier: Apache-2.0
// One [[fault]] of a scenario file.
#pragma once

#include "kernels/sim/scenario.h"
#include "runner/core/toml_table.h"

namespace muster::sim {

/// Reads one fault; each kind takes only its own keys. Devices and network of the scenario are known already.
Fault readFault(TomlTable table, const Scenario& scenario);

}  // namespace muster::sim
