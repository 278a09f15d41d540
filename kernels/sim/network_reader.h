// SPDX-License-Identifier: Apache-2.0
// The [network] of a scenario file.
#pragma once

#include "kernels/sim/scenario.h"
#include "runner/core/toml_table.h"

namespace muster::sim {

/// A scenario without one has no communicators.
void readNetwork(TomlTable& root, Fabric& out);

}  // namespace muster::sim
