// SPDX-License-Identifier: Apache-2.0
// How figures of one part change over its runs: steps and slopes, told apart from noise. Pure statistics.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/history/change_models.h"
#include "reports/history/store/store.h"

namespace muster::history {

/// What counts as a change.
struct TrendOptions {
  double least = 0.01;          ///< share of the level; smaller changes are never named
  double falseAlarms = 0.01;    ///< expected number of false findings in a whole table
  double noiseFloor = 0.002;    ///< share; runs are never taken for more alike than this
  size_t leastRuns = 4;         ///< of a series
  size_t leastDifferences = 6;  ///< from which the noise of a figure is estimated
  size_t mostChanges = 10'000;  ///< that are listed; the others are counted
};

/// One value of a figure. Run and device belong to the SeriesReader.
struct Reading {
  const Run* run = nullptr;
  const Device* device = nullptr;
  double value = 0;  ///< median, base unit
};

/// The same figure of the same part, run after run, wherever it was plugged in.
struct Series {
  const FigureName* figure = nullptr;
  std::string serial;  ///< empty: it is known by its place
  bool simulated = false;
  std::vector<const Run*> runs;        ///< from the oldest to the newest
  std::vector<const Device*> devices;  ///< its place in the node of each run
  std::vector<double> values;          ///< medians, base unit

  /// Where it was last.
  [[nodiscard]] const std::string& node() const { return runs.back()->node; }
  [[nodiscard]] const std::string& device() const { return devices.back()->name; }
  /// "n17 gpu3": where it was in run `i`.
  [[nodiscard]] std::string place(size_t i) const;
  /// Whether it is in the same place in run `i` as in the run before.
  [[nodiscard]] bool stayed(size_t i) const;
  /// "n17 gpu3 (serial S3): gemm compute.gemm_throughput dtype=bf16".
  [[nodiscard]] std::string text() const;
};

/// A change that noise does not explain.
struct Change : ChangeModel {
  Series series;
  bool worse = false;      ///< in the metric's bad direction; a metric without one only changes
  double change = 0;       ///< (after - before) / |before|
  double noise = 0;        ///< standard deviation from run to run, share of the level
  size_t differences = 0;  ///< from which the noise was estimated
  double limit = 0;        ///< what `sigmas` had to exceed

  /// What was seen, how sure, and what to do next: one line each.
  [[nodiscard]] std::string seen() const;
  [[nodiscard]] std::string sure() const;
  [[nodiscard]] std::string next() const;
};

struct Trends {
  std::vector<Change> changes;  ///< worsened first, the surest first
  size_t left = 0;              ///< changes beyond TrendOptions::mostChanges
  size_t series = 0;            ///< that were looked at
  size_t tooFew = 0;            ///< that have too few runs, or too few to know their noise
  size_t zero = 0;              ///< with a median of zero: a change has no share of it, so none is found
  size_t measured = 0;          ///< series that are not simulated
  size_t worseMeasured = 0;     ///< changes for the worse, listed or not
  size_t worseSimulated = 0;
};

/// Readings of one figure to series: apart by part and simulation. A part is known by its serial, so one that
/// was moved is followed, and one that was replaced begins anew; one without serial, or with one of `shared`
/// ("0", "N/A": two devices of a run have it), is known by node and place.
std::vector<Series> seriesOf(const FigureName& figure, const std::vector<Reading>& readings,
                             const std::set<std::string>& shared);

/// Finds steps and slopes in series that come figure by figure; keeps no series that did not change.
/// The noise of a figure is the median absolute difference of successive runs over all parts of
/// its node, each in its place, so a part that changes or moves does not hide itself; a part that was in
/// several nodes has the noise of the noisiest. Of a step and a slope the one that leaves smaller residuals
/// is named, if it exceeds `least` and as many standard errors as keep `falseAlarms` over all comparisons
/// (Bonferroni over all splits, on a Student distribution).
class TrendFinder {
 public:
  explicit TrendFinder(const TrendOptions& options = {}) : options_(options) {}

  /// All series of one figure, of nodes that share parts with no others.
  void add(const std::vector<Series>& figure);
  /// How many series were added, and what changed in them.
  Trends finish();

 private:
  /// What is left of a change that is not listed.
  struct Unlisted {
    double sigmas = 0;
    size_t differences = 0;
    bool worse = false, simulated = false;
  };

  [[nodiscard]] double limitFor(size_t differences) const;
  void examine(const Series& series, double level, double sigma, size_t differences);
  void shorten(size_t most);

  TrendOptions options_;
  Trends trends_;
  size_t comparisons_ = 0;  ///< each split, and the slope, of all series so far
  std::vector<Unlisted> unlisted_;
};

/// How much a figure varies from run to run of one node.
struct Noise {
  double sigma = 0;  ///< share of the level
  size_t differences = 0;
};
/// By node, and whether simulated.
using Noises = std::map<std::pair<std::string, bool>, Noise>;

/// Of one figure, from differences of successive runs in one place, as shares of the series' level. Robust:
/// up to half of them may be changes. About zero, since healthy runs do not drift.
Noises noisesOf(const std::vector<Series>& figure, double floor);

/// The noise of a series: that of the noisiest node that it was in, of those whose noise is known from
/// `least` differences or more. No differences: it is not known.
Noise noiseOf(const Series& series, const Noises& known, size_t least);

/// Whether a change goes in the metric's bad direction.
bool isWorse(Direction direction, double change);

}  // namespace muster::history
