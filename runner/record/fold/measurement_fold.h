// SPDX-License-Identifier: Apache-2.0
// Measurements inside their stage: one object for a metric of a case, with a row for each rank and repeat.
#pragma once

#include <string>
#include <vector>

#include "runner/metrics/measurement.h"

namespace muster {

/// The measurements as JSON, in the order of groupMeasurements. Samples are in units of 10^exponent, where a
/// group has one; see sample_pack.h.
Json foldedMeasurements(const std::vector<Measurement>& measurements);

/// Reads what foldedMeasurements wrote (and whole measurements too), every sample bit for bit.
Result<std::vector<Measurement>> unfoldedMeasurements(const Json& list, const std::string& path);

/// Puts those of one metric, case and set of labels (but the device) beside each other. A record holds them
/// in this order, so what is judged and shown before it is written had better be in it, too.
void groupMeasurements(std::vector<Measurement>& measurements);

/// Samples that packed lists of `list` stand for in all of its rows; see sample_pack.h.
uint64_t packedSampleCount(const Json& list);

}  // namespace muster
