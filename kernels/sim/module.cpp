// SPDX-License-Identifier: Apache-2.0
// The one symbol that backend_sim.so exports.
#include "kernels/sim/backend.h"
#include "runner/core/build_info.h"

extern "C" __attribute__((visibility("default"))) const muster::BackendEntry muster_backend_entry;
const muster::BackendEntry muster_backend_entry = {muster::buildId(), &muster::sim::openBackend};
