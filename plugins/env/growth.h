// SPDX-License-Identifier: Apache-2.0
// Turns cumulative counters into what they grew by, sample by sample and in total.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/interfaces/inventory.h"

namespace muster::env {

/// Whether a reading counts up for ever (see namespace reading).
bool isCumulative(const std::string& name);
/// Whether telemetry reports a metric as its total since the stage began: counters, and what is made of one.
bool isTotal(const std::string& metric);

/// Remembers the last value of every counter.
class Growth {
 public:
  /// From now on, counters that were never seen count from zero: their history is part of what is looked at.
  void startAtZero() { startsAtZero_ = true; }
  /// The counters of an earlier process, as `counts` gave them: the first reading is growth since then. One
  /// that is smaller was reset meanwhile and starts anew, without growth.
  void resume(const Json& counts);
  /// A cumulative reading as its growth since the last call; nothing at the first one. A counter that fell
  /// (the driver was loaded again) counts from zero. Other readings pass as they are.
  std::optional<Reading> since(Reading reading);
  /// What the next process can resume from, in an object: numbers of errors and events. Times are no part of
  /// it, because what slowed the node down between two stages slowed neither. `withLog`: the next process
  /// reads the kernel's log from where this one left it, so what is counted in it starts at zero there;
  /// without, it is left out.
  [[nodiscard]] Json counts(bool withLog) const;

 private:
  struct Counter {
    Reading reading;       ///< the last one
    bool resumed = false;  ///< of an earlier process
  };
  bool startsAtZero_ = false;
  std::map<std::string, Counter> last_;
};

/// Adds up growth.
class Totals {
 public:
  /// The readings of a sample; each that isTotal() as its total, with the words of its latest growth.
  std::vector<Reading> add(std::vector<Reading> sample);

 private:
  std::map<std::string, Reading> totals_;
};

}  // namespace muster::env
