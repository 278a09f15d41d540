// SPDX-License-Identifier: Apache-2.0
// What callers may ask of a Program and hand to it: the same on every backend, as it follows from the
// Network. All errors are kUsage and name what was wanted.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/spec/network.h"
#include "runner/core/result.h"

namespace muster {

Status checkParameter(const Network& network, int parameter);
/// `count` values for a parameter.
Status checkParameterValues(const Network& network, int parameter, size_t count);
Status checkStatistics(const Network& network, int statistics);
/// `count` values: means, then variances.
Status checkStatisticsValues(const Network& network, int statistics, size_t count);
/// kUnsupported for a tensor of indices, or one that the program does not hold.
Status checkReadable(const Network& network, Tensor tensor, bool held);
/// `count` numbers for an input.
Status checkNumbers(const Network& network, Tensor input, size_t count);
/// Indices for an input, each below its limit.
Status checkIndices(const Network& network, Tensor input, std::span<const int32_t> indices);

/// "host-0123456789abcdef": a short name for the order in which parameters lie, which `description` tells in
/// full.
std::string layoutName(const std::string& backend, const std::string& description);

}  // namespace muster
