// SPDX-License-Identifier: Apache-2.0
// Measurements that are sampled over time: their worst stretch, and what a drop must be to be found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/metrics/measurement.h"

namespace muster {

/// The worst stretch of a measurement, after all stretches of consecutive windows were looked at. Rates and
/// times are both handled as speeds: half the speed is a loss of 50%.
struct WorstStretch {
  double reference = 0;  ///< the measurement's own level: the best that lasted, in the metric's unit
  double level = 0;      ///< mean over the stretch, in the metric's unit
  double loss = 0;       ///< 1 - speed over the stretch / speed at the reference
  /// The loss that a stretch of this length may show by noise alone. Estimated from the measurement itself,
  /// at most kMostNoise: a device whose noise is larger does not excuse itself by it.
  double noise = 0;
  double begin = 0;  ///< share of the measurement's time, or seconds where the length of a window is known
  double end = 0;    ///< likewise
  bool inSeconds = false;                            ///< what begin and end are
  size_t windows = 0;                                ///< of the whole measurement
  double leastDrop() const { return loss - noise; }  ///< the loss beyond noise
};

inline constexpr double kMostNoise = 0.1;
/// With fewer windows, a drop over time cannot be told from a difference between two samples.
inline constexpr size_t kFewestWindows = 2;
/// Runs are cut into up to this many slices of equal time: a drop that lasts longer than one slice fills more
/// than half of at least one of them, and a slice's level is its median, so that single slow runs do not
/// count.
inline constexpr size_t kMostSlices = 20;
inline constexpr size_t kRunsPerSlice = 8;  ///< on average; fewer runs make fewer slices
inline constexpr size_t kFewestSlices = 4;  ///< below, only a limit is compared with the worst slice

/// Empty where the samples are in no order, or hold a value that is no speed (a negative rate, a time of
/// zero).
std::optional<WorstStretch> worstStretch(const std::vector<double>& samples, Series series,
                                         Direction direction, double window);

/// Whether `samples` are enough to judge a drop over time.
bool enoughForDrop(size_t samples, Series series);

/// The measurement's worst level, less what noise explains: what limits are compared with, besides the
/// median.
double sustainedLevel(const WorstStretch& stretch, Direction direction);

/// "from 6m50s to 10m", "from 66% to 100% of its time".
std::string spanText(const WorstStretch& stretch);

/// What a stage samples, for detectableDrop.
struct SampledTime {
  Series series = Series::kWindows;
  double total = 0;        ///< seconds sampled
  double window = 0;       ///< kWindows: seconds of one sample
  size_t runs = 1000;      ///< kRuns: how many a healthy device does in this time
  double sigma = 0.005;    ///< standard deviation of one window's level, as a share of it
  double tolerance = 0.1;  ///< drop_max in force
};

/// The smallest loss of speed (a share of 1) that is certain to fail drop_max if it lasts `seconds` without a
/// break, whenever it begins; above 1 if none is. "Certain" leaves 1 miss in 10,000 to noise. Smaller or
/// shorter drops are below what the stage detects by itself. One that leaves less than four windows (or
/// slices) of full speed may not be found as a drop either: limits and peers judge it.
double detectableDrop(const SampledTime& sampled, double seconds);

}  // namespace muster
