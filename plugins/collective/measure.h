// SPDX-License-Identifier: Apache-2.0
// One size of a sweep: is it right, and how long does it take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/interfaces/communicator.h"
#include "plugins/collective/params.h"

namespace muster::collective {

/// Result of one placement of one size.
struct Timing {
  bool inPlace = false;
  std::vector<double> seconds;  ///< of one run in each sample, on the slowest rank
  CollectiveMismatch mismatch;  ///< of this rank: all checks together, the first fault
  double mostWrong = 0;         ///< elements, on the worst rank

  [[nodiscard]] double mean() const;
};

/// One size, as far as it was run.
struct SizeResult {
  uint64_t asked = 0;   ///< bytes, the label
  CollectiveSpec spec;  ///< with the count
  uint64_t bytes = 0;   ///< really moved: S of nccl-tests
  std::vector<Timing> timings;

  [[nodiscard]] const Timing* timing(bool inPlace) const;
  /// B/s of a time in seconds.
  [[nodiscard]] double algorithmBandwidth(double seconds) const {
    return static_cast<double>(bytes) / seconds;
  }
  [[nodiscard]] double busBandwidth(double seconds, int ranks) const {
    return algorithmBandwidth(seconds) * spec.busFactor(ranks);
  }
};

/// One size in one placement, to be measured.
struct Placement {
  Communicator& group;
  const Params& params;
  const CollectiveSpec& spec;
  uint64_t seed;
  std::function<bool()> keepGoing;  ///< asked between samples; false cancels
};

/// Checked runs first, then the warm-up, then the samples, each from a barrier on. Out of place, the last
/// timed result is checked too. All ranks call it. What the checks found is in `timing` after an error, too.
Status measure(const Placement& placement, Timing& timing);

}  // namespace muster::collective
