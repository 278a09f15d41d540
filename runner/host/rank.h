// SPDX-License-Identifier: Apache-2.0
// The rank: loads the plugin and runs its cases, or describes it. Runs in the process below the guard.
#pragma once

#include <string>
#include <vector>

#include "runner/host/frame_writer.h"
#include "runner/host/request.h"

namespace muster {

/// Loads the plugin, opens one session, runs every case and closes it; all that happens is told in frames.
/// The same for each further request, as long as the plugin takes several in one process. Returns the exit
/// code: 0 once `done` was written, whatever the outcome of the cases; 1 after a `fatal` frame.
int runRanks(const std::vector<Result<HostRequest>>& requests, FrameWriter& frames);

/// Writes the `describe` frame of the library `path`; 1 after a `fatal` frame.
int describePlugin(const std::string& path, FrameWriter& frames);

}  // namespace muster
