// SPDX-License-Identifier: Apache-2.0
// Turns cumulative counters into what they grew by, sample by sample.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kernels/interfaces/inventory.h"

namespace muster::env {

/// Whether a reading counts up for ever (see namespace reading).
bool isCumulative(const std::string& name);

/// Remembers the last value of every counter.
class Growth {
 public:
  /// From now on, counters that were never seen count from zero: their history is part of what is looked at.
  void startAtZero() { startsAtZero_ = true; }
  /// A cumulative reading as its growth since the last call; nothing at the first one. A counter that fell
  /// (the driver was loaded again) counts from zero. Other readings pass as they are.
  std::optional<Reading> since(Reading reading);

 private:
  bool startsAtZero_ = false;
  std::map<std::string, double> last_;
};

}  // namespace muster::env
