// SPDX-License-Identifier: Apache-2.0
// Metrics of GPUs that the driver's library alone tells, as lists in the JSON of describe().
#pragma once

namespace muster::env {

/// Current health of a GPU (Inventory::health()); the tests health and telemetry report it.
extern const char* const kGpuState;
/// How a GPU is set up (Inventory::surroundings()); the test health reports it.
extern const char* const kGpuSetup;

}  // namespace muster::env
