// SPDX-License-Identifier: Apache-2.0
// Fleets that are made up for tests and benchmarks of learning: every figure is a pure function of the model.
#pragma once

#include <cmath>
#include <numbers>
#include <string>

#include "kernels/sim/chance.h"
#include "runner/sku/learn.h"

namespace muster::testing {

struct FleetModel {
  int nodes = 500;
  int devices = 8;
  int metrics = 10;
  int compute = 5;          ///< the first of them, which a slow GPU shows in
  double sigma = 0.01;      ///< of one figure, as a share
  double common = 0.5;      ///< sigma of what the figures of one node share, as a share of sigma
  bool skewed = false;      ///< residuals lean to the bad side (a skew normal distribution of shape -4)
  double sickNodes = 0;     ///< share of the nodes that have one slow GPU, or are slow as a whole
  bool wholeNodes = false;  ///< which of the two
  uint64_t seed = 1;
};

/// Not truncated at three sigmas as those of scenarios are: tails are learned here.
inline double wholeNormal(uint64_t key) {
  const double radius = std::sqrt(-2 * std::log(sim::uniform(key)));
  return radius * std::cos(2 * std::numbers::pi * sim::uniform(sim::mix(key, uint64_t{1})));
}

/// Mean 0 and sigma 1, long on the left: a half normal and a normal variable, mixed.
inline double leftSkewed(uint64_t key) {
  constexpr double kShape = 4;
  const double delta = kShape / std::sqrt(1 + kShape * kShape);
  const double mean = delta * std::sqrt(2 / std::numbers::pi);
  const double value = delta * std::fabs(wholeNormal(key)) +
                       std::sqrt(1 - delta * delta) * wholeNormal(sim::mix(key, uint64_t{7}));
  return (mean - value) / std::sqrt(1 - mean * mean);
}

inline uint64_t fleetKey(const FleetModel& model, uint64_t a, uint64_t b, uint64_t c) {
  return sim::mix(sim::mix(sim::mix(model.seed, a), b), c);
}

/// Of a node, 1 where it is healthy; between 0.8 and 0.97 where it or one of its devices is sick.
inline double sickFactor(const FleetModel& model, int node) {
  const uint64_t key = fleetKey(model, 0x5111, static_cast<uint64_t>(node), 0);
  if (sim::uniform(key) >= model.sickNodes) return 1;
  return 0.8 + 0.17 * sim::uniform(sim::mix(key, uint64_t{2}));
}

inline double figureOf(const FleetModel& model, int metric, int node, int device) {
  const auto n = static_cast<uint64_t>(node);
  const uint64_t key = fleetKey(model, n, static_cast<uint64_t>(device), static_cast<uint64_t>(metric));
  const double own = model.skewed ? leftSkewed(key) : wholeNormal(key);
  const double shared = model.common * wholeNormal(fleetKey(model, 0xc0, n, 0));
  const double factor = sickFactor(model, node);
  const int place = static_cast<int>(fleetKey(model, 0x91ace, n, 0) % static_cast<uint64_t>(model.devices));
  const bool slow = factor < 1 && metric < model.compute && (model.wholeNodes || device == place);
  return 1e12 * (metric + 1) * (1 + model.sigma * (own + shared)) * (slow ? factor : 1);
}

inline LearnInput fleetOf(const FleetModel& model) {
  LearnInput input;
  for (int node = 0; node < model.nodes; ++node) {
    LearnNode entry{"n" + std::to_string(node), {}, ""};
    for (int device = 0; device < model.devices; ++device)
      entry.devices.push_back("gpu" + std::to_string(device));
    input.nodes.push_back(std::move(entry));
  }
  for (int metric = 0; metric < model.metrics; ++metric) {
    LearnGroup group{"stage", "made.rate" + std::to_string(metric), {}, "FLOP/s", Direction::kHigher, "", {}};
    for (int node = 0; node < model.nodes; ++node)
      for (int device = 0; device < model.devices; ++device)
        group.figures.push_back({node, device, figureOf(model, metric, node, device)});
    input.groups.push_back(std::move(group));
  }
  input.physical.resize(input.groups.size());
  return input;
}

/// The lowest figure that a learned limit lets pass.
inline double floorOf(const LearnedLimit& limit) {
  return limit.value * (1 - limit.tolerance);
}

/// Whether any figure of the node misses its limit when GPU 0 works at `factor` of its speed.
inline bool rejects(const Learned& learned, const FleetModel& model, int node, double factor) {
  for (const LearnedLimit& limit : learned.limits) {
    const int metric = static_cast<int>(limit.group);
    for (int device = 0; device < model.devices; ++device) {
      const bool slow = device == 0 && metric < model.compute;
      if (figureOf(model, metric, node, device) * (slow ? factor : 1) < floorOf(limit)) return true;
    }
  }
  return false;
}

}  // namespace muster::testing
