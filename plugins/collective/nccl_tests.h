// SPDX-License-Identifier: Apache-2.0
// The results of a sweep in the formats of nccl-tests, so that parsers written for them work.
#pragma once

#include <string>
#include <vector>

#include "plugins/collective/measure.h"
#include "runner/core/json.h"

namespace muster::collective {

/// A finished sweep as its leader knows it.
struct SweepResult {
  Params params;
  int ranks = 1;
  std::string device;  ///< model of rank 0's device
  std::string implementation;
  std::vector<SizeResult> sizes;

  /// Mean busbw over sizes and placements, GB/s: what nccl-tests prints last. No limit fits it.
  [[nodiscard]] double averageBusBandwidth() const;
  [[nodiscard]] int outOfBounds() const;  ///< placements of sizes with a wrong element
};

/// The table that nccl-tests prints.
std::string ncclTestsTable(const SweepResult& result);
/// Its JSON, version 3.
Json ncclTestsJson(const SweepResult& result);

}  // namespace muster::collective
