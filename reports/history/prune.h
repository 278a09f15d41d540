// SPDX-License-Identifier: Apache-2.0
// Which runs a history keeps when it is thinned: a pure rule.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reports/history/store/store.h"

namespace muster::history {

/// What is kept of each node, of its measured and its simulated runs apart.
struct PruneRule {
  double days = 90;    ///< every run that is younger
  size_t newest = 20;  ///< number of newest runs to keep, of any age
  double every = 7;    ///< days: of older runs the last of each such span, by acceptance
};

/// Why a run is kept, the first that applies.
enum class KeptFor {
  kYoung,
  kNewest,
  kAcceptance,  ///< the node's last one, which `compare` needs
  kSpan,
};
inline constexpr size_t kKeptForCount = 4;

struct PrunePlan {
  std::vector<int64_t> remove;  ///< numbers of runs, ascending
  std::array<size_t, kKeptForCount> kept{};
  size_t nodes = 0;
  size_t runs = 0;
};

/// `now`: seconds since 1970. The same runs remain when it is applied again at the same time, and what a
/// later time removes besides has aged since. The run that was added last is always kept: no number is used
/// twice.
PrunePlan planPrune(const std::vector<RunSummary>& runs, const PruneRule& rule, double now);

}  // namespace muster::history
