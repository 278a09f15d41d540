// SPDX-License-Identifier: Apache-2.0
// A node's record as a scenario: simulated devices that reach what the real ones did.
#pragma once

#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

struct CapturedScenario {
  std::string text;  ///< TOML, as plans/README.md describes it
  /// Metrics that failed in the record and cannot be simulated from it: a scenario does not show those
  /// failures.
  std::vector<std::string> notCaptured;
};

/// Inventory without serial numbers and names of machines, rates of the best device, and of each other one
/// how much slower it was. kUsage where the record lacks what every scenario needs: a GEMM rate and a memory
/// bandwidth.
Result<CapturedScenario> capturedScenario(const Record& record, const std::string& name);

}  // namespace muster
