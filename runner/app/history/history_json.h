// SPDX-License-Identifier: Apache-2.0
// `muster history --json`: runs, changes, comparisons, fleets and deltas for other programs.
#pragma once

#include "reports/history/compare.h"
#include "reports/history/delta.h"
#include "reports/history/trend.h"
#include "runner/core/json.h"

namespace muster {

Json toJson(const history::Run& run);
Json toJson(const history::Trends& trends);
Json toJson(const history::KeptFleet& fleet);
Json toJson(const history::Delta& delta);
Json toJson(const history::Comparison& comparison);

}  // namespace muster
