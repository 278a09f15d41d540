// SPDX-License-Identifier: Apache-2.0
// Models the tail of healthy values; fitted to the central values only.
#pragma once

#include <cstddef>
#include <span>

namespace muster::fleet {

/// The bad half of a noise as a gamma distribution of skewness `skew` (0: normal) and standard deviation
/// `scale` around its median. zOf is the Wilson-Hilferty transformation (1931), which makes it normal.
class TailModel {
 public:
  TailModel(double scale, double skew, double freedom);

  /// The standard normal quantile that `deviation` (from the median, bad is positive) is as rare as.
  [[nodiscard]] double zOf(double deviation) const;
  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] double skew() const { return skew_; }

 private:
  double scale_, skew_, median_, freedom_;
};

/// A fit, with how well the values tell it from another skewness.
struct TailFit {
  double scale = 0;
  double skew = 0;
  size_t n = 0;  ///< values on the bad side that were used
};

/// Values on the bad side of the median, counted in bins of their distance: all that a fit needs.
class TailCounts {
 public:
  static constexpr double kReach = 4;  ///< in standard deviations; what lies further out may be sick
  static constexpr size_t kBins = 80;

  /// `deviations` from their median, bad is positive; `sigma` of their bulk.
  TailCounts(std::span<const double> deviations, double sigma);
  TailCounts() = default;

  void add(const TailCounts& other);
  [[nodiscard]] size_t n() const { return n_; }
  /// In units of sigma: most likely scale and skewness of the values between the median and kReach.
  [[nodiscard]] TailFit fit() const;
  /// The most likely scale, in units of sigma, for a given skewness.
  [[nodiscard]] TailFit fitScale(double skew) const;
  [[nodiscard]] double logLikelihood(const TailFit& fit) const;

 private:
  double counts_[kBins] = {};
  size_t n_ = 0;
};

/// The most likely skewness, drawn towards `prior` as far as these values do not speak against it
/// (as James and Stein do, and wholly within two standard errors), with its most likely scale.
TailFit shrunkFit(const TailCounts& counts, double prior);

}  // namespace muster::fleet
