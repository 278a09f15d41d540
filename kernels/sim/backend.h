// SPDX-License-Identifier: Apache-2.0
// The sim backend: a scenario as a machine.
#pragma once

#include "kernels/interfaces/backend.h"

namespace muster::sim {

/// Opens the scenario named in `options`.
Result<std::unique_ptr<Backend>> openBackend(const BackendOptions& options);

}  // namespace muster::sim
