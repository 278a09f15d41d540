// SPDX-License-Identifier: Apache-2.0
// Robust centre and scatter of the pairs' figures.
#include "plugins/ring/solver/baseline.h"
#include "runner/core/statistics.h"

#include <algorithm>
#include <cmath>

namespace muster::ring {
namespace {

constexpr double kPriorFigures = 32;  ///< figures that weigh as much as the floor
constexpr double kLeastSigma = 0.004;
constexpr double kMostSigma = 0.25;       ///< unless the floor is wider
constexpr double kRemeasureChance = 0.1;  ///< share of healthy tests in which a pair is remeasured
constexpr double kNeededChance = 2e-4;  ///< healthy tests in which a single figure makes a pair slow, at most
constexpr double kSaferChance = 1e-8;   ///< the same, where noise is small
constexpr double kSaferUpTo = 0.12;     ///< well short of the least fault that must be found (15%: 0.16)
constexpr double kConfirmChance = 2.3e-4;  ///< that a figure of a healthy pair confirms: 3.5 sigma
constexpr double kAgainChance = 3e-3;      ///< that one further look at a healthy pair says slow
constexpr double kLeastLoss = 0.03;        ///< what no operator would call a fault
constexpr double kReach = 3;               ///< sigmas that the cluster reaches to either side
constexpr double kTailReach = 5;           ///< sigmas; what lies beyond is no healthy figure
constexpr double kNormalCubes = 1.5958;    ///< mean |z|^3 of normal figures: 4 / sqrt(2 pi)
// By which power of the third moment's excess rare figures lie farther out than normal ones, whatever the
// shape: computed for gamma noise of shape 1 to 16, Laplace noise, and medians of five of each.
constexpr double kFarTailPower = 1.2;   ///< one in 10^6 to 10^8 (1.05 to 1.35)
constexpr double kTailPower = 1;        ///< one in 10^4 to 10^5 (0.83 to 1.08)
constexpr double kNearTailPower = 0.7;  ///< one in 10^2 to 10^3 (0.45 to 0.68)
constexpr double kMostTail = 2;
constexpr double kTailFigures = 20;  ///< slower ones weigh as much as the belief that noise is normal
constexpr int kIterations = 12;

/// Where the search starts: the highest window of two reaches that holds so many of all.
double startingPoint(const std::vector<double>& sorted, double width, size_t least) {
  for (size_t top = sorted.size(); top-- >= least;) {
    const auto begin = std::lower_bound(sorted.begin(), sorted.end(), sorted[top] - width);
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(top) + 1;
    if (static_cast<size_t>(end - begin) >= least) return medianOf({begin, end});
  }
  return medianOf(sorted);
}

/// MAD of the figures on the slower side of the centre: noise is skewed towards slow.
double slowerScatter(std::vector<double>::const_iterator begin, std::vector<double>::const_iterator end,
                     double center) {
  std::vector<double> below;
  for (auto it = begin; it != end && *it <= center; ++it) below.push_back(center - *it);
  if (below.empty()) return 0;
  return kMadToSigma * medianOf(below);
}

/// Few figures are not believed to scatter otherwise than by the floor.
double believedSigma(double floor, double seen, double figures) {
  return std::sqrt((kPriorFigures * floor * floor + figures * seen * seen) / (kPriorFigures + figures));
}

Tail tailOf(const std::vector<double>& sorted, double center, double sigma) {
  Tail tail;
  for (auto it = std::lower_bound(sorted.begin(), sorted.end(), center - kTailReach * sigma);
       it != sorted.end() && *it <= center; ++it) {
    const double z = (center - *it) / sigma;
    tail.cubes += z * z * z;
    ++tail.figures;
  }
  return tail;
}

}  // namespace

Tail& Tail::operator+=(const Tail& other) {
  cubes += other.cubes;
  figures += other.figures;
  return *this;
}

double Tail::factor(double power) const {
  if (figures == 0) return 1;
  const double seen = std::pow(cubes / figures / kNormalCubes, power);
  return 1 + (std::clamp(seen, 1.0, kMostTail) - 1) * figures / (figures + kTailFigures);
}

Baseline findBaseline(std::vector<double> logs, double floor, size_t part) {
  Baseline base;
  base.sigma = base.floor = floor;
  if (logs.empty()) return base;
  std::sort(logs.begin(), logs.end());
  base.center = startingPoint(logs, 2 * kReach * floor, (logs.size() + part - 1) / part);
  for (int i = 0; i < kIterations; ++i) {
    const double reach = kReach * base.sigma;
    const auto begin = std::lower_bound(logs.cbegin(), logs.cend(), base.center - reach);
    const auto end = std::upper_bound(begin, logs.cend(), base.center + reach);
    const double center = begin == end ? base.center : medianOf({begin, end});
    const double seen = slowerScatter(begin, end, center);
    const auto n = static_cast<double>(end - begin);
    const double sigma = believedSigma(floor, seen, n);
    const bool settled = center == base.center && std::abs(sigma - base.sigma) < 1e-4;
    base.center = center;
    base.seen = seen;
    base.figures = n;
    base.sigma = std::clamp(sigma, kLeastSigma, std::max(kMostSigma, floor));
    if (settled) break;
  }
  base.tail = tailOf(logs, base.center, std::max(base.seen, kLeastSigma));
  return base;
}

Limits limitsOf(const Baseline& base, const Tail& tail, size_t family) {
  const auto figures = static_cast<double>(std::max<size_t>(family, 1));
  const auto limit = [&](double chance, double power) {
    // The tail was seen, the floor is a belief about noise without one.
    const double seen = std::min(base.seen, base.sigma) * tail.factor(power);
    return -normalQuantile(std::min(0.5, chance)) * believedSigma(base.floor, seen, base.figures);
  };
  Limits limits;
  limits.remeasure = std::max(kLeastLoss, limit(kRemeasureChance / figures, kTailPower));
  // Where noise is small, more distance costs no fault that matters and spares rounds.
  const double safer = std::min(limit(kSaferChance / figures, kFarTailPower), kSaferUpTo);
  limits.slow = std::max({limits.remeasure, limit(kNeededChance / figures, kFarTailPower), safer});
  limits.confirms = std::max(-normalQuantile(kConfirmChance) * base.sigma, limit(kConfirmChance, kTailPower));
  limits.slowAgain = std::max(kLeastLoss, limit(kAgainChance, kNearTailPower));
  return limits;
}

}  // namespace muster::ring
