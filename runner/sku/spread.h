// SPDX-License-Identifier: Apache-2.0
// How the healthy figures of a fleet spread: a robust fit of centre, sigma and left skew, and the limit that
// a wanted share of healthy figures keeps, with the confidence that their number allows. README.md names the
// sources.
#pragma once

#include <vector>

namespace muster {

/// A distribution by its quantile function: centre + sigma (z - skew (z^2 - 1)), z the normal quantile
/// (Cornish and Fisher's first two terms). `skew` > 0 is a longer tail on the bad side; it is never negative.
struct Spread {
  double centre = 0;
  double sigma = 0;
  double skew = 0;

  /// How many sigmas the bad tail of share `tail` begins away from the centre.
  [[nodiscard]] double reach(double tail) const;
};

/// How much of the sorted figures a fit looks at.
enum class FitWindow {
  kMiddle,  ///< between z -1 and 1, without skew: holds while a seventh of the figures are sick
  kMost,    ///< between z -2 and 2, with skew: for figures whose outliers are out
};

/// Least squares of the sorted figures over their normal scores. `values` are signed so that larger is
/// better; at least 4. Sigma is not less than `floor`.
Spread fitSpread(std::vector<double> values, FitWindow window, double floor);

/// Of figures in groups (nodes): the share of their variance that is common to a group, in [0, 1], and the
/// mean number of figures in a group. One-way analysis of variance.
struct Clustering {
  double common = 0;
  double size = 1;
};
Clustering clusteringOf(const std::vector<double>& values, const std::vector<int>& groups);

/// How many sigmas below the centre a limit must lie so that, with `confidence`, at most `tail` of healthy
/// figures miss it, when `spread` was fitted to `n` figures that cluster so.
double toleranceFactor(const Spread& spread, double tail, double confidence, double n,
                       const Clustering& clustering);

/// Standard error of the skew that was fitted to `n` figures that cluster so.
double skewError(double n, const Clustering& clustering);

}  // namespace muster
