// SPDX-License-Identifier: Apache-2.0
// How figures of one part change over its runs: steps and slopes, told apart from noise. Pure statistics.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/history/store.h"

namespace muster::history {

/// What counts as a change.
struct TrendOptions {
  double least = 0.01;          ///< share of the level; smaller changes are never named
  double falseAlarms = 0.01;    ///< expected number of false findings in a whole table
  double noiseFloor = 0.002;    ///< share; runs are never taken for more alike than this
  size_t leastRuns = 4;         ///< of a series
  size_t leastDifferences = 6;  ///< from which the noise of a figure is estimated
};

/// The same figure of the same part, run after run, wherever it was plugged in.
struct Series {
  std::string node, device;  ///< where it was last
  std::string serial, stage, caseId, metric, unit, labels;
  Direction direction = Direction::kNone;
  bool simulated = false;
  std::vector<Run> runs;             ///< from the oldest to the newest
  std::vector<std::string> devices;  ///< its place in the node of each run
  std::vector<double> values;        ///< medians, base unit

  /// "n17 gpu3": where it was in run `i`.
  [[nodiscard]] std::string place(size_t i) const;
  /// Whether it is in the same place in run `i` as in the run before.
  [[nodiscard]] bool stayed(size_t i) const;
  /// "n17 gpu3 (serial S3): gemm compute.gemm_throughput dtype=bf16".
  [[nodiscard]] std::string text() const;
};

enum class ChangeKind { kStep, kSlope };

/// A change that noise does not explain.
struct Change {
  Series series;
  ChangeKind kind = ChangeKind::kStep;
  bool worse = false;      ///< in the metric's bad direction; a metric without one only changes
  size_t at = 0;           ///< step: the first run at the new level
  double before = 0;       ///< level; slope: at the first run
  double after = 0;        ///< level; slope: at the last run
  double change = 0;       ///< (after - before) / |before|
  double perDay = 0;       ///< slope: change of the share a day
  double noise = 0;        ///< standard deviation from run to run, share of the level
  size_t differences = 0;  ///< from which the noise was estimated
  double sigmas = 0;       ///< size of the change in standard errors
  double limit = 0;        ///< what it had to exceed

  /// What was seen, how sure, and what to do next: one line each.
  [[nodiscard]] std::string seen() const;
  [[nodiscard]] std::string sure() const;
  [[nodiscard]] std::string next() const;
};

struct Trends {
  std::vector<Change> changes;  ///< worsened first, the surest first
  size_t series = 0;            ///< that were looked at
  size_t tooFew = 0;            ///< that have too few runs, or too few to know their noise
};

/// Points to series: apart by part, figure and simulation. A part is known by its serial, so one that was
/// moved is followed, and one that was replaced begins anew; one without serial, or with a serial that two
/// devices of one run have, is known by node and place.
std::vector<Series> seriesOf(const std::vector<Point>& points);

/// Looks for a step (the split whose two medians leave the smallest absolute residuals) and a slope
/// (Theil-Sen). The noise of a figure is the median absolute difference of successive runs over all parts of
/// its node, each in its place, so a part that changes or moves does not hide itself; a part that was in
/// several nodes has the noise of the noisiest. Of both models the one that leaves smaller residuals is
/// named, if it exceeds `least` and as many standard errors as keep `falseAlarms` over all comparisons
/// (Bonferroni, on a Student distribution).
Trends findTrends(const std::vector<Series>& series, const TrendOptions& options = {});

/// How much a figure varies from run to run of one node.
struct Noise {
  double sigma = 0;  ///< share of the level
  size_t differences = 0;
};
using Noises = std::map<std::string, Noise>;

/// From differences of successive runs in one place, as shares of the series' level. Robust: up to half of
/// them may be changes. About zero, since healthy runs do not drift.
Noises noisesOf(const std::vector<Series>& all, double floor);

/// The noise of a series: that of the noisiest node that it was in, of those whose noise is known from
/// `least` differences or more. No differences: it is not known.
Noise noiseOf(const Series& series, const Noises& known, size_t least);

/// The upper quantile of Student's distribution at tail probability `p`, by its normal approximation (Wallace
/// 1959): exact enough far out.
double studentQuantile(double p, double freedom);

/// Whether a change goes in the metric's bad direction.
bool isWorse(Direction direction, double change);

/// The median; NaN of nothing.
double medianOf(std::vector<double> values);

}  // namespace muster::history
