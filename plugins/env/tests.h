// SPDX-License-Identifier: Apache-2.0
// The three tests of the env plugin.
#pragma once

#include <memory>

#include "plugins/env/machine.h"

namespace muster::env {

std::unique_ptr<sdk::Session> makeInventoryTest(const sdk::Host& host, Machine machine);
std::unique_ptr<sdk::Session> makeHealthTest(const sdk::Host& host, Machine machine);
std::unique_ptr<sdk::Session> makeTelemetryTest(const sdk::Host& host, Machine machine);

}  // namespace muster::env
