// SPDX-License-Identifier: Apache-2.0
// A small scenario for the tests of the sim backend.
#pragma once

#include <memory>
#include <string>

#include "kernels/sim/scenario/scenario.h"
#include "kernels/sim/sim_device.h"

namespace muster::sim {

/// TOML of two exact devices (no noise, no spread, no ramp, no overhead) of 1 TFLOP/s and 1 GB/s, with `more`
/// at its end.
std::string smallScenarioText(const std::string& more = "");

/// Parses it; a mistake fails the test.
std::shared_ptr<const Scenario> smallScenario(const std::string& more = "");

/// Device `index` of it, opened at virtual time `start`.
std::unique_ptr<SimDevice> smallDevice(const std::string& more = "", int index = 0, double start = 0,
                                       int nodeRank = 0);

}  // namespace muster::sim
