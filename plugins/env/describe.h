// SPDX-License-Identifier: Apache-2.0
// What the env plugin offers: its tests, their parameters and every metric.
#pragma once

#include <set>
#include <string>

namespace muster::env {

/// The JSON of describe().
const std::string& describeText();

/// Names of the metrics that `test` reports on `backend`.
std::set<std::string> metricNames(const std::string& test, const std::string& backend);

}  // namespace muster::env
