// SPDX-License-Identifier: Apache-2.0
// Estimates the node component: robust locations of nodes, variances within and between them.
#include "reports/fleet/peers/node_component.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/fleet/peers/robust.h"
#include "runner/core/statistics.h"

namespace muster::fleet {
namespace {

constexpr float kNoPart = std::numeric_limits<float>::quiet_NaN();
constexpr double kFarOut = 4;  ///< nodes beyond so many standard deviations are not drawn to the group

double spreadOfLocation(const NodeParts& parts, double devices) {
  const double own = parts.deviceSigma * parts.deviceSigma / devices;
  return std::sqrt(parts.nodeSigma * parts.nodeSigma + own);
}

/// A node's location as varied as that of a node of the usual size.
double asUsual(double location, size_t devices, const NodeParts& parts) {
  const double spread = spreadOfLocation(parts, static_cast<double>(devices));
  const double scale = spread > 0 ? spreadOfLocation(parts, parts.usual) / spread : 1;
  return (location - parts.nodeCenter) * scale;
}

/// Takes one metric apart, step by step.
class Separation {
 public:
  Separation(std::span<const double> values, const NodeBounds& first, size_t leastNodes)
      : values_(values), first_(first), nodes_(first.size() - 1), leastNodes_(leastNodes) {}

  NodeParts run() {
    centerValues();
    parts_.own.assign(values_.size(), kNoPart);
    parts_.node.assign(nodes_, kNoPart);
    if (parts_.n == 0) return std::move(parts_);
    if (mates_ == 0) {  // one device a node: nothing to take apart
      parts_.deviceSigma = kMadToSigma * parts_.mad;
      parts_.freedom = static_cast<double>(parts_.n) - 1;
      for (size_t i = 0; i < values_.size(); ++i)
        parts_.own[i] = static_cast<float>(values_[i] - parts_.center);
      return std::move(parts_);
    }
    spreadWithin();
    spreadBetween();
    for (size_t node = 0; node < nodes_; ++node) ownOf(node);
    return std::move(parts_);
  }

 private:
  void centerValues() {
    std::vector<double> present;
    for (const double value : values_)
      if (std::isfinite(value)) present.push_back(value);
    parts_.n = present.size();
    parts_.center = medianOf(present);
    parts_.mad = madOf(present, parts_.center);
    deviations_.resize(nodes_);
    for (size_t node = 0; node < nodes_; ++node) {
      for (size_t i = first_[node]; i < first_[node + 1]; ++i)
        if (std::isfinite(values_[i])) deviations_[node].push_back(values_[i] - parts_.center);
      present_ += deviations_[node].empty() ? 0 : 1;
      mates_ += deviations_[node].size() > 1 ? deviations_[node].size() - 1 : 0;
    }
  }

  /// deviceSigma, first around the nodes' medians, then around their better locations.
  void spreadWithin() {
    locations_.assign(nodes_, kNaN);
    for (size_t node = 0; node < nodes_; ++node) {
      std::vector<double> some = deviations_[node];
      locations_[node] = medianOf(some);
    }
    parts_.deviceSigma = sigmaAroundLocations();
    for (size_t node = 0; node < nodes_; ++node)
      if (!deviations_[node].empty()) locations_[node] = huberMean(deviations_[node], parts_.deviceSigma);
    parts_.deviceSigma = sigmaAroundLocations();
    parts_.freedom = static_cast<double>(mates_);
  }

  /// Residuals around a location of n values vary by a share of (n - 1) / n only.
  [[nodiscard]] double sigmaAroundLocations() const {
    std::vector<double> residuals;
    for (size_t node = 0; node < nodes_; ++node) {
      const auto n = static_cast<double>(deviations_[node].size());
      if (n < 2) continue;
      for (const double d : deviations_[node])
        residuals.push_back((d - locations_[node]) * std::sqrt(n / (n - 1)));
    }
    return kMadToSigma * madOf(residuals, 0);
  }

  /// nodeSigma: what is left of the nodes' spread when that of their devices is taken off.
  void spreadBetween() {
    parts_.usual = static_cast<double>(parts_.n) / static_cast<double>(present_);
    enoughNodes_ = present_ >= leastNodes_;
    if (!enoughNodes_) return;
    std::vector<double> seen;
    for (const double location : locations_)
      if (std::isfinite(location)) seen.push_back(location);
    parts_.nodeCenter = medianOf(seen);
    const double sigma = kMadToSigma * madOf(seen, parts_.nodeCenter);
    const double chance = parts_.deviceSigma * parts_.deviceSigma / parts_.usual;
    parts_.nodeSigma = std::sqrt(std::max(0.0, sigma * sigma - chance));
    for (size_t node = 0; node < nodes_; ++node)
      if (!deviations_[node].empty())
        parts_.node[node] = static_cast<float>(asUsual(locations_[node], deviations_[node].size(), parts_));
  }

  /// As if so many devices more of this node had been as the group is.
  [[nodiscard]] double priorOf(size_t node) const {
    if (!enoughNodes_) return 0;
    if (std::abs(locations_[node] - parts_.nodeCenter) >
        kFarOut * spreadOfLocation(parts_, static_cast<double>(deviations_[node].size())))
      return 0;
    const double ratio = parts_.deviceSigma / std::max(parts_.nodeSigma, 1e-3 * parts_.deviceSigma);
    return std::isfinite(ratio) ? ratio * ratio : 0;
  }

  void ownOf(size_t node) {
    const double prior = priorOf(node);
    std::vector<double> others;
    for (size_t i = first_[node]; i < first_[node + 1]; ++i) {
      if (!std::isfinite(values_[i])) continue;
      others.clear();
      for (size_t j = first_[node]; j < first_[node + 1]; ++j)
        if (j != i && std::isfinite(values_[j])) others.push_back(values_[j] - parts_.center);
      const double known = prior + static_cast<double>(others.size());
      if (known <= 0) continue;
      const double expected = huberMean(others, parts_.deviceSigma, prior);
      const double own = (values_[i] - parts_.center - expected) / std::sqrt(1 + 1 / known);
      parts_.own[i] = static_cast<float>(own);
    }
  }

  std::span<const double> values_;
  const NodeBounds& first_;
  size_t nodes_;
  size_t leastNodes_;
  size_t present_ = 0;  ///< nodes with a value
  size_t mates_ = 0;    ///< devices beyond the first of their node
  bool enoughNodes_ = false;
  std::vector<std::vector<double>> deviations_;
  std::vector<double> locations_;
  NodeParts parts_;
};

}  // namespace

NodeParts takeApart(std::span<const double> values, const NodeBounds& first, size_t leastNodes) {
  return Separation(values, first, leastNodes).run();
}

double commonPart(std::span<const double> values, const NodeParts& parts) {
  std::vector<double> present;
  for (const double value : values)
    if (std::isfinite(value)) present.push_back(value - parts.center);
  if (present.empty()) return kNaN;
  return asUsual(huberMean(present, parts.deviceSigma), present.size(), parts);
}

}  // namespace muster::fleet
