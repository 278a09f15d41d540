// SPDX-License-Identifier: Apache-2.0
// Waiting that ends early when the run is to stop.
#pragma once

#include "plugins/sdk/plugin.h"

namespace muster::env {

/// Sleeps until the steady clock (systemClock().now()) shows `until`; false when the host asked to stop
/// before.
bool pauseUntil(const sdk::Host& host, double until);

}  // namespace muster::env
