// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP as a flag: the first asks the run to end in order, the second ends it at once.
#pragma once

#include <atomic>
#include <string>

namespace muster {

/// Set once SIGINT, SIGTERM or (unless it was ignored, as under `nohup`) SIGHUP arrived.
const std::atomic<bool>& interrupted();

/// What ended the run: the time limit of its Slurm job (which the job's script tells in the environment:
/// MUSTER_JOB_END, seconds since 1970, and MUSTER_JOB_MINUTES), or the signal. Empty while nothing has.
std::string interruptionText();

/// The signal that set it; 0 while nothing has.
int interruptingSignal();

/// Installs the handlers. A second signal has its default effect; ranks then end through their lifeline.
/// `tells`: whether to confirm the signal on stderr.
void installInterruptHandlers(bool tells = true);

}  // namespace muster
