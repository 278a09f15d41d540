// SPDX-License-Identifier: Apache-2.0
// One level of comparison, devices or nodes: how odd each unit is in each metric and each class of metrics.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/fleet/peers/tail_model.h"

namespace muster::fleet {

/// A metric as one level sees it.
struct LevelMetric {
  std::span<const float> deviations;  ///< per unit, around 0, bad is positive; NaN where missing
  double floor = 0;                   ///< least standard deviation
  double freedom = 0;                 ///< independent differences that the spread is estimated from
  bool bothSides = false;             ///< either side is bad
  std::string metricClass;            ///< empty: alone
};

/// What a unit's deviations come to.
struct UnitTests {
  std::vector<double> metricZ;   ///< per metric, as of a normal distribution; NaN where missing
  std::vector<double> classZ;    ///< per class; NaN where fewer than two of its metrics are there
  std::vector<double> classOff;  ///< per class: the deviation over its metrics, the exact ones weighing more
};

/// Learns what is usual from all units, then says of any unit how odd it is.
class LevelTests {
 public:
  explicit LevelTests(const std::vector<LevelMetric>& metrics);

  /// `row`: the unit's deviation in each metric.
  [[nodiscard]] UnitTests test(std::span<const double> row) const;

  [[nodiscard]] const std::vector<std::string>& classes() const { return names_; }
  [[nodiscard]] double skewOf(size_t metric) const { return usual_[metric].bad.skew(); }
  [[nodiscard]] double scaleOf(size_t metric) const { return usual_[metric].bad.scale(); }
  /// The deviation in this metric from which on a unit is as odd as `z`.
  [[nodiscard]] double deviationOf(size_t metric, double z) const;
  /// How many tests a healthy group has: of single metrics, of classes.
  [[nodiscard]] double metricTests() const { return metricTests_; }
  [[nodiscard]] double classTests() const { return classTests_; }

 private:
  struct Usual {
    TailModel bad{1, 0, 0};
    TailModel good{1, 0, 0};  ///< the other side, where both are bad
    bool bothSides = false;
  };
  struct Sum {
    double value = 0, off = 0;
    size_t n = 0;
  };

  void learnMetrics(const std::vector<LevelMetric>& metrics);
  void nameClasses(const std::vector<LevelMetric>& metrics);
  void learnClasses(const std::vector<LevelMetric>& metrics);
  [[nodiscard]] Sum sumOf(size_t classNumber, std::span<const double> row) const;

  std::vector<Usual> usual_;
  std::vector<std::string> names_;
  std::vector<std::vector<size_t>> members_;  ///< metrics of each class
  std::vector<TailModel> classUsual_;
  double metricTests_ = 0;
  double classTests_ = 0;
};

/// How the false names that are allowed are shared out among the kinds of tests (Bonferroni).
struct Shares {
  double metrics, classes;
};
constexpr Shares kDeviceShares = {0.45, 0.40};
constexpr Shares kNodeShares = {0.10, 0.05};

/// What one unit's tests come to.
struct Judged {
  double z = 0;
  double falseNames = std::numeric_limits<double>::infinity();
  std::optional<size_t> strongestClass;
  double classFalseNames = std::numeric_limits<double>::infinity();
  std::vector<double> metricFalseNames;
};

/// Bonferroni: the tail of each z, times the tests of its kind in the group, over that kind's share.
Judged judge(const UnitTests& tests, const LevelTests& level, const Shares& shares);

}  // namespace muster::fleet
