// SPDX-License-Identifier: Apache-2.0
// The [network] of a scenario file.
#pragma once

#include "kernels/sim/scenario/scenario.h"
#include "runner/core/toml/toml_table.h"

namespace muster::sim {

/// A scenario without one has no communicators.
void readNetwork(TomlTable& root, Fabric& out);

}  // namespace muster::sim
