// SPDX-License-Identifier: Apache-2.0
// Fits scale and skewness of a tail by maximum likelihood.
#include "reports/fleet/peers/tail_model.h"

#include <algorithm>
#include <cmath>

#include "runner/core/statistics.h"

namespace muster::fleet {
namespace {

constexpr double kMostSkew = 1.9;     ///< an exponential distribution has 2
constexpr double kNormal = 1e-3;      ///< a smaller skewness is none
constexpr size_t kLeastForFit = 100;  ///< values on the bad side; fewer tell no shape
constexpr double kLeastRatio = 4;     ///< likelihood ratio (twice its logarithm) of two standard errors
constexpr double kGolden = 0.6180339887498949;

/// The most likely x in [low, high] of a function with one peak.
template <typename F>
double peakOf(F function, double low, double high, double precision) {
  double a = high - kGolden * (high - low);
  double b = low + kGolden * (high - low);
  double atA = function(a);
  double atB = function(b);
  while (high - low > precision) {
    if (atA >= atB) {
      high = b;
      b = a;
      atB = atA;
      a = high - kGolden * (high - low);
      atA = function(a);
    } else {
      low = a;
      a = b;
      atA = atB;
      b = low + kGolden * (high - low);
      atB = function(b);
    }
  }
  return (low + high) / 2;
}

}  // namespace

TailModel::TailModel(double scale, double skew, double freedom)
    : scale_(scale), skew_(skew), median_(0), freedom_(freedom) {
  if (skew_ > kNormal) median_ = 2 / skew_ * (std::pow(1 - skew_ * skew_ / 36, 3) - 1);
}

double TailModel::zOf(double deviation) const {
  double u = deviation / scale_;
  if (skew_ > kNormal) {
    // The gamma's lower end: nothing is better than that, so all below is as good as it gets.
    const double cube = std::max(0.0, 1 + (u + median_) * skew_ / 2);
    u = 6 / skew_ * (std::cbrt(cube) - 1 + skew_ * skew_ / 36);
  }
  return freedom_ > 0 ? normalFromStudent(u, freedom_) : u;
}

TailCounts::TailCounts(std::span<const double> deviations, double sigma) {
  for (const double deviation : deviations) {
    const double u = deviation / sigma;
    if (u < 0 || u >= kReach) continue;
    counts_[static_cast<size_t>(u / kReach * kBins)] += 1;
    ++n_;
  }
}

void TailCounts::add(const TailCounts& other) {
  for (size_t i = 0; i < kBins; ++i) counts_[i] += other.counts_[i];
  n_ += other.n_;
}

double TailCounts::logLikelihood(const TailFit& fit) const {
  const TailModel tail(fit.scale, fit.skew, 0);
  const double all = 0.5 - normalTail(tail.zOf(kReach));
  double sum = 0;
  double before = 0.5;
  for (size_t i = 0; i < kBins; ++i) {
    const double after = normalTail(tail.zOf(kReach * static_cast<double>(i + 1) / kBins));
    if (counts_[i] > 0) sum += counts_[i] * std::log(std::max((before - after) / all, 1e-300));
    before = after;
  }
  return sum;
}

TailFit TailCounts::fitScale(double skew) const {
  const auto at = [&](double scale) { return logLikelihood({scale, skew, n_}); };
  return {peakOf(at, 0.5, 2.0, 1e-3), skew, n_};
}

TailFit TailCounts::fit() const {
  const auto at = [&](double skew) { return logLikelihood(fitScale(skew)); };
  const double skew = peakOf(at, 0, kMostSkew, 4e-3);
  return fitScale(skew < 8e-3 ? 0 : skew);
}

TailFit shrunkFit(const TailCounts& counts, double prior) {
  if (counts.n() < kLeastForFit) return {1, prior, counts.n()};
  const TailFit free = counts.fit();
  const TailFit held = counts.fitScale(prior);
  const double ratio = 2 * (counts.logLikelihood(free) - counts.logLikelihood(held));
  const double trust = ratio > kLeastRatio ? 1 - kLeastRatio / ratio : 0;
  return counts.fitScale(prior + trust * (free.skew - prior));
}

}  // namespace muster::fleet
