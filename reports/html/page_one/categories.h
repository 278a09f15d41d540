// SPDX-License-Identifier: Apache-2.0
// Five categories of checks, for readers who do not know the metrics.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runner/core/names.h"
#include "runner/record/record.h"

namespace muster {

enum class Category { kHealth, kCompute, kMemory, kLinks, kStability };
constexpr std::array<const char*, 5> namesOf(Category) {
  return {"Health", "Compute", "Memory", "Links", "Stability"};
}

Category categoryOf(const StageRecord& stage, const Verdict& verdict);

/// A value that met its limit, and how near it came.
struct NearestCheck {
  const StageRecord* stage = nullptr;
  const Verdict* verdict = nullptr;
};

/// Of each metric that met its limits the check with the least margin; the nearest first. Counts and states
/// have no margin.
std::vector<NearestCheck> nearestChecks(const Record& record);

/// "gemm throughput" of "compute.gemm_throughput".
std::string metricWords(const std::string& metric);

}  // namespace muster
