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

/// The worst of several nodes' exit codes, the first of: interrupted, internal, usage, rejected,
/// incomplete, no GPU.
constexpr int worstExit(int a, int b) {
  constexpr int kOrder[] = {kExitInterrupted, kExitInternal,   kExitUsage,
                            kExitRejected,    kExitIncomplete, kExitNoGpu};
  for (int code : kOrder)
    if (a == code || b == code) return code;
  return kExitAccepted;
}

}  // namespace muster
