// SPDX-License-Identifier: Apache-2.0
// `muster history --json`: runs, changes and comparisons for other programs.
#pragma once

#include "reports/history/compare.h"
#include "reports/history/trend.h"
#include "runner/core/json.h"

namespace muster {

Json toJson(const history::Run& run);
Json toJson(const history::Trends& trends);
Json toJson(const history::Comparison& comparison);

}  // namespace muster
