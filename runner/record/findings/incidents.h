// SPDX-License-Identifier: Apache-2.0
// Incidents: deviations with one cause, told as one.
#pragma once

#include <string>
#include <vector>

#include "runner/record/findings/deviations.h"

namespace muster {

/// One cause. Memory errors, row remaps and XIDs of one device belong together, and so do ranks that were
/// given up because another one hung or died.
struct Incident {
  std::vector<Deviation> findings;  ///< at least one, the leading one first
  std::vector<std::string> notRun;  ///< stages that were skipped because of it, in order

  [[nodiscard]] const Deviation& main() const { return findings.front(); }
  [[nodiscard]] bool blocks() const { return main().blocks; }
  /// The first step of the leading finding's remedy; empty where it has none.
  [[nodiscard]] std::string action() const;
  /// "Not run because of it: gemm-best, training"; empty where all ran.
  [[nodiscard]] std::string notRunText() const;
};

/// All deviations of a record, the worst first. A stage that was skipped because of one that did not pass is
/// no incident of its own.
std::vector<Incident> incidents(const Record& record);

}  // namespace muster
