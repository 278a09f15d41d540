// SPDX-License-Identifier: Apache-2.0
// See sim_fleet.h.
#include "tests/reports/fleet/sim_fleet.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "kernels/spec/pattern.h"

namespace muster::fleet::testing {
namespace {

/// Draws in a row, each a function of the seed and its number.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(scatter(seed ^ 0x6d757374657266ULL)) {}

  /// Mean 0 and standard deviation 1.
  double next(Noise noise) {
    switch (noise) {
      case Noise::kNormal:
        return normal();
      case Noise::kLeftSkewed:
        return -gamma(16);
      case Noise::kVeryLeftSkewed:
        return -gamma(4);
    }
    return 0;
  }

 private:
  double uniform() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return (static_cast<double>(scatter(state_) >> 11) + 0.5) * 0x1p-53;
  }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }
  double gamma(int shape) {
    double product = 1;
    for (int i = 0; i < shape; ++i) product *= uniform();
    return (-std::log(product) - shape) / std::sqrt(shape);
  }

  uint64_t state_;
};

void addMetrics(PeerGroup& group, const char* metricClass, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    PeerMetric& metric = group.metrics.emplace_back();
    metric.name = fmt::format("{}-{}", metricClass, i + 1);
    metric.unit = "FLOP/s";
    metric.metricClass = metricClass;
  }
}

void apply(PeerGroup& group, const Defect& defect, size_t devices) {
  for (size_t device = 0; device < devices; ++device) {
    if (!defect.wholeNode && device != defect.device) continue;
    for (const size_t m : defect.metrics)
      group.values[(defect.node * devices + device) * group.metrics.size() + m] *= 1 - defect.size;
  }
}

}  // namespace

const char* noiseName(Noise noise) {
  switch (noise) {
    case Noise::kNormal:
      return "normal";
    case Noise::kLeftSkewed:
      return "left-skewed";
    case Noise::kVeryLeftSkewed:
      return "very left-skewed";
  }
  return "?";
}

PeerGroup simulate(const SimFleet& fleet, uint64_t seed, const std::vector<Defect>& defects) {
  PeerGroup group;
  group.name = "simulated";
  addMetrics(group, "compute-bound", fleet.computeBound);
  addMetrics(group, "memory-bound", fleet.memoryBound);
  addMetrics(group, "link-bound", fleet.linkBound);
  const double common = fleet.sigma * std::sqrt(fleet.commonShare);
  const double own = fleet.sigma * std::sqrt(1 - fleet.commonShare);
  Draws draws(seed);
  group.values.reserve(fleet.nodes * fleet.devices * group.metrics.size());
  std::vector<double> shared(group.metrics.size());
  for (size_t n = 0; n < fleet.nodes; ++n) {
    PeerNode& node = group.nodes.emplace_back();
    node.name = fmt::format("node{:04}", n + 1);
    for (double& part : shared) part = common * draws.next(fleet.noise);
    for (size_t d = 0; d < fleet.devices; ++d) {
      node.devices.push_back(fmt::format("gpu{}", d));
      for (size_t m = 0; m < shared.size(); ++m)
        group.values.push_back(1e14 * static_cast<double>(m + 1) *
                               (1 + shared[m] + own * draws.next(fleet.noise)));
    }
  }
  for (const Defect& defect : defects) apply(group, defect, fleet.devices);
  return group;
}

std::vector<size_t> firstMetrics(size_t count) {
  std::vector<size_t> metrics(count);
  for (size_t i = 0; i < count; ++i) metrics[i] = i;
  return metrics;
}

}  // namespace muster::fleet::testing
