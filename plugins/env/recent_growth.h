// SPDX-License-Identifier: Apache-2.0
// What counters grew by in the last second or minute: their rate, whatever the time between samples.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/interfaces/inventory.h"

namespace muster::env {

/// Makes rates of the growth of some counters, as limits are stated: the share of time that software held the
/// clocks down, NVLink's CRC errors of a second, PCIe's replays of a minute.
class RecentGrowth {
 public:
  /// The first sample holds growth since `time`; without this, of no time at all.
  void startAt(double time) { last_ = time; }
  /// `sample`: readings that Growth turned into growth since the sample before, taken at `time`. A rate
  /// counts what grew within the time that it is stated for, and less than that where the sampling has only
  /// begun; of samples further apart, the mean.
  std::vector<Reading> rates(const std::vector<Reading>& sample, double time);

 private:
  struct Step {
    double begin;
    double growth;
  };
  std::map<std::string, std::deque<Step>> steps_;  ///< by counter and device
  std::optional<double> last_;
};

}  // namespace muster::env
