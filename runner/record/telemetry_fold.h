// SPDX-License-Identifier: Apache-2.0
// Telemetry series inside their stage: series of the same readings share one time axis, and one whose values
// are the samples of a measurement points at it.
#pragma once

#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

/// The stage's series as JSON: {"times": [axes], "series": [groups]}, see columnar_rows.h. An axis is a list
/// of seconds, or {"start", "step", "n"} where its points stand evenly (to the millisecond). A series has
/// `time`, the index of its axis, and either `of`, the index of the measurement of which it has metric, unit,
/// device and samples, or these itself. A summary that its values give is left out.
Json foldedTelemetry(const StageRecord& stage);

/// Reads what foldedTelemetry wrote. The measurements of `stage` must be there.
Result<std::vector<TelemetrySeries>> unfoldedTelemetry(const Json& json, const StageRecord& stage,
                                                       const std::string& path);

}  // namespace muster
