// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP as a flag: the first asks the run to end in order, the second ends it at once.
#pragma once

#include <atomic>

namespace muster {

/// Set once SIGINT, SIGTERM or (unless it was ignored, as under `nohup`) SIGHUP arrived.
const std::atomic<bool>& interrupted();

/// Installs the handlers. A second signal has its default effect; ranks then end through their lifeline.
void installInterruptHandlers();

}  // namespace muster
