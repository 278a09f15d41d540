// SPDX-License-Identifier: Apache-2.0
// Adds up the sampling times that parameters name.
#include "runner/app/stage/duration_estimate.h"

#include <algorithm>

#include "runner/core/text.h"

namespace muster {
namespace {

/// Seconds until the rate of a warm-up is steady, as the simulated devices and H100 show it.
constexpr double kSettle = 0.22;
/// The same of compute.gemm on GPUs, which waits until their power has settled.
constexpr double kPowerSettles = 2.04;

std::optional<double> number(const Case& c, const char* name) {
  const auto at = c.params.find(name);
  if (at == c.params.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

bool isSeconds(const TestSpec& test, const char* name) {
  const ParamSpec* param = test.param(name);
  return param != nullptr && param->unit == "s";
}

/// How often a case samples: each metric over time, for each item of its lists, each peer and each direction.
double samplings(const Case& c, const TestSpec& test, const EstimatedNode& node) {
  double series = 0;
  bool peers = false, directions = false;
  for (const MetricSpec& metric : test.metrics) {
    if (metric.series == Series::kNone) continue;
    ++series;
    peers = peers || contains(metric.labels, "peer");
    directions = directions || contains(metric.labels, "direction");
  }
  double lists = 1;
  for (const ParamSpec& param : test.params)
    if (const auto at = c.params.find(param.name); at != c.params.end() && at->is_array())
      lists *= static_cast<double>(at->size());
  return std::max(series, 1.0) * lists * (peers ? std::max(node.devices - 1, 0) : 1) * (directions ? 2 : 1);
}

std::optional<double> sampled(const Case& c, const TestSpec& test, const EstimatedNode& node) {
  const char* name = isSeconds(test, "min_time") ? "min_time" : isSeconds(test, "time") ? "time" : nullptr;
  const auto time = name == nullptr ? std::nullopt : number(c, name);
  if (!time) return std::nullopt;
  const double warmup = isSeconds(test, "warmup") ? number(c, "warmup").value_or(0) : 0;
  const double turns = test.param("turn_timeout") != nullptr && !node.simulated ? node.ranks : 1;
  const double settle = test.name == "gemm" && node.gpus ? kPowerSettles : kSettle;
  return (*time + std::min(warmup, settle)) * samplings(c, test, node) * turns;
}

std::optional<double> secondsOf(const Case& c, const TestSpec& test, const EstimatedNode& node) {
  if (isSeconds(test, "duration"))
    if (const auto duration = number(c, "duration")) return duration;
  if (const auto time = sampled(c, test, node)) return time;
  const auto seconds = number(c, "seconds"), samples = number(c, "samples");
  if (!seconds || !samples) return std::nullopt;
  const auto hcas = c.params.find("hcas");
  const bool all = hcas == c.params.end() || !hcas->is_array() || *hcas == Json::array({"all"});
  return *seconds * *samples * (all ? node.ports : static_cast<double>(hcas->size()));
}

}  // namespace

std::optional<double> estimatedSeconds(const Stage& stage, const TestSpec& test, const EstimatedNode& node) {
  double sum = 0;
  for (const Case& c : stage.cases) {
    auto seconds = secondsOf(c, test, node);
    if (!seconds) seconds = workSeconds(stage, c, node);
    if (!seconds) return std::nullopt;
    sum += *seconds * stage.repeat;
  }
  return sum;
}

}  // namespace muster
