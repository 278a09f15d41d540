// SPDX-License-Identifier: Apache-2.0
// What changed between two profiles, in words: which limits loosen, tighten, come or go.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/sku/profile.h"

namespace muster {

/// How a limit changed.
enum class Change { kLooser, kTighter, kOther, kAdded, kRemoved };

struct LimitChange {
  Change change = Change::kOther;
  std::string what;    ///< "compute.gemm_throughput dtype=bf16 size=8192"
  std::string before;  ///< "at least 657 TFLOP/s"; empty when added
  std::string after;
  double moved = 0;  ///< share by which the limit moved; NaN when that has no meaning
  /// All else that differs, one line each: "statistic: min, was median".
  std::vector<std::string> fields{};
};

struct ProfileDiff {
  std::vector<std::string> facts;  ///< "device_count: 8, was 4", one line each
  std::vector<LimitChange> limits;
  size_t same = 0;  ///< limits that did not change
};

/// `directionOf` tells which way a metric is better.
ProfileDiff diffProfiles(const Profile& before, const Profile& after,
                         const std::function<Direction(const std::string& metric)>& directionOf);

}  // namespace muster
