// SPDX-License-Identifier: Apache-2.0
// How the kernel sees a process: running, asleep, stopped, stuck.
#pragma once

#include <sys/types.h>

#include "runner/core/result.h"

namespace muster {

struct ProcessState {
  char state = 0;         ///< R, S, D, T, t, Z ... as in proc(5)
  double cpuSeconds = 0;  ///< user and system time of all its threads
};

/// Reads /proc/PID/stat. An error when the process is gone or the file is not as proc(5) says.
Result<ProcessState> readProcessState(pid_t pid);

}  // namespace muster
