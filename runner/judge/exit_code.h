// SPDX-License-Identifier: Apache-2.0
// The exit codes of `muster`; what a scheduler or a script decides by.
#pragma once

namespace muster {

enum ExitCode {
  kExitAccepted = 0,
  kExitRejected = 1,    ///< a fail or a flaky verdict
  kExitUsage = 2,       ///< bad usage, plan or profile
  kExitIncomplete = 3,  ///< errors, required skips, missing nodes, unjudged under --strict
  kExitInternal = 4,    ///< a fault of Muster itself, or the record could not be written
  kExitNoGpu = 5,       ///< no GPU, and --no-gpu=skip
  kExitInterrupted = 130,
};

}  // namespace muster
