// SPDX-License-Identifier: Apache-2.0
// Durations within bounds, with one message for each mistake.
#pragma once

#include <string_view>

#include "runner/core/result.h"

namespace muster {

/// The durations that one place takes: seconds, both bounds included, and how a message says so.
struct DurationRange {
  double least = 0;
  double most = 0;
  std::string_view text;  ///< "a duration above 0s and up to 30d, for example 5m"
};

/// Reads a duration as parseDuration() does. Whatever is wrong with it, the message says what was found and
/// then, once, that `range.text` is expected.
Result<double> parseDuration(std::string_view text, const DurationRange& range);

}  // namespace muster
