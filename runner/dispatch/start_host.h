// SPDX-License-Identifier: Apache-2.0
// Starts one muster-host with exactly the descriptors it is to have, and ends what a lost one left behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/system/files.h"

namespace muster {

/// A started muster-host: its guard's pid and our ends of its pipes (all close-on-exec, the read ones
/// non-blocking).
struct SpawnedHost {
  pid_t pid = -1;
  std::string marker;  ///< value of MUSTER_HOST_ID in its environment, inherited by all below it
  Fd frames;
  Fd output;    ///< its stdout and stderr
  Fd report;    ///< the supervisor's report
  Fd lifeline;  ///< closing it ends the guard and all below
};

/// Runs `command` in a process group of its own with stdin from /dev/null, the pipes on 1 to 5 and nothing
/// else open, but for `store`: where that is one, descriptor 6 is a copy of it.
Result<SpawnedHost> spawnHost(const std::vector<std::string>& command, const Fd& store = Fd());

/// Kills every process that carries `marker`; for when a guard was killed and can no longer do it. Returns
/// whether none is left.
bool killMarked(const std::string& marker);

}  // namespace muster
