// SPDX-License-Identifier: Apache-2.0
// Chooses key metrics and collects their values.
#include "reports/fleet/assess/key_figures.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "runner/core/statistics.h"

namespace muster::fleet {
namespace {

/// Parts of names of metrics, the preferred ones first.
constexpr std::string_view kPreferred[kKeyFigureCount][4] = {
    {"compute.gemm_throughput (dtype=bf16", "compute.gemm_throughput", "compute.", "train."},
    {"memory.bandwidth (op=copy", "memory.bandwidth", "", ""},
    {"collective.bus_bandwidth", "memory.peer_bandwidth", "ring.device_bandwidth", "memory.host_to_device"},
    {"sustained: env.temperature", "gemm: env.temperature", "env.temperature", ""}};

/// How many devices have a value in a column.
size_t countOf(const PeerTable& table, size_t column) {
  size_t count = 0;
  for (size_t i = column; i < table.group.values.size(); i += table.keys.size())
    count += std::isnan(table.group.values[i]) ? 0 : 1;
  return count;
}

/// How many nodes a figure shows: one may list more devices than all others have.
size_t nodesOf(const KeyFigure& figure) {
  std::set<size_t> nodes;
  for (const auto& point : figure.points) nodes.insert(point.node);
  return nodes.size();
}

/// The column that shows class `k`, of several the one that most devices have: one node may have figures of
/// its own. Nothing where the table has none.
std::optional<size_t> columnOf(const PeerTable& table, size_t k) {
  for (const std::string_view part : kPreferred[k]) {
    if (part.empty()) continue;
    std::optional<size_t> most;
    for (size_t c = 0; c < table.keys.size(); ++c)
      if (table.group.metrics[c].name.find(part) != std::string::npos &&
          (k == kTemperature || table.group.metrics[c].direction == Direction::kHigher) &&
          (!most || countOf(table, c) > countOf(table, *most)))
        most = c;
    if (most) return most;
  }
  return std::nullopt;
}

bool isWorse(double a, double b, bool higherIsBetter) {
  return std::isnan(b) || (higherIsBetter ? a < b : a > b);
}

}  // namespace

void addKeyFigures(const PeerTable& table, FleetNodes& nodes, KeyFigures& figures) {
  const size_t width = table.keys.size();
  for (size_t k = 0; k < kKeyFigureCount; ++k) {
    const std::optional<size_t> column = columnOf(table, k);
    if (!column) continue;
    const PeerMetric& metric = table.group.metrics[*column];
    KeyFigure figure;
    figure.name = metric.name;
    figure.sku = table.group.name;
    figure.unit = metric.unit;
    figure.higherIsBetter = k != kTemperature;
    if (!std::isnan(metric.expected))
      figure.limit = metric.expected * (figure.higherIsBetter ? 1 - metric.tolerance : 1 + metric.tolerance);
    std::vector<double> values;
    size_t row = 0;
    for (size_t n = 0; n < table.nodes.size(); ++n) {
      FleetNode& node = nodes[table.nodes[n]];
      for (size_t d = 0; d < table.group.nodes[n].devices.size(); ++d, ++row) {
        const double value = table.group.values[row * width + *column];
        if (std::isnan(value)) continue;
        values.push_back(value);
        figure.points.push_back({value, table.nodes[n], table.group.nodes[n].devices[d]});
        if (isWorse(value, node.keyValues[k], figure.higherIsBetter)) node.keyValues[k] = value;
      }
    }
    if (values.empty()) continue;
    figure.median = medianOf(values);
    for (const size_t n : table.nodes)
      if (const double value = nodes[n].keyValues[k]; !std::isnan(value) && figure.median > 0)
        nodes[n].keyShares[k] = k == kTemperature ? value - figure.median : value / figure.median;
    std::stable_sort(figure.points.begin(), figure.points.end(), [&](const auto& a, const auto& b) {
      return figure.higherIsBetter ? a.value < b.value : a.value > b.value;
    });
    if (nodesOf(figure) > nodesOf(figures[k])) figures[k] = std::move(figure);
  }
}

}  // namespace muster::fleet
