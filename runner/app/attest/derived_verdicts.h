// SPDX-License-Identifier: Apache-2.0
// Stored verdicts beside those that the stored samples come to.
#pragma once

#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

struct VerdictDifference {
  std::string text;
  /// The same figures, of which one build warns and another does not: no proof where the builds differ.
  bool ofWarnings = false;
};

/// In what the verdicts of `record` differ from those of `again`, the same record judged again: "stage gemm,
/// compute.gemm_throughput gpu5: stored pass, derived fail". `texts`: also in their words, which another
/// build may choose otherwise.
std::vector<VerdictDifference> verdictDifferences(const Record& record, const Record& again, bool texts);

}  // namespace muster
