// SPDX-License-Identifier: Apache-2.0
// Estimates how long a stage takes, by what its test declares.
#pragma once

#include <optional>

#include "runner/app/stage/work_estimate.h"
#include "runner/metrics/catalog.h"
#include "runner/plan/plan.h"

namespace muster {

/// Seconds that all cases of `stage` take, with its repeats. A case takes the time that its parameters name:
/// `duration`; else `min_time` or `time` and the part of `warmup` until rates are steady, for each metric
/// that is sampled over time, each item of the lists among the parameters and each peer; else `samples` times
/// `seconds` for each port. Where ranks take turns (`turn_timeout`), each waits for all; simulated ones do
/// not. Where a test names none of these, what its work takes (work_estimate.h); nothing where that is not
/// known, or a program decides.
std::optional<double> estimatedSeconds(const Stage& stage, const TestSpec& test, const EstimatedNode& node);

}  // namespace muster
