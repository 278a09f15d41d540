// SPDX-License-Identifier: Apache-2.0
// Builds the tables of values that peer comparison and distributions use.
#include "reports/fleet/assess/peer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "runner/core/statistics.h"

namespace muster::fleet {
namespace {

const std::string kNoDevice;  ///< stands for the node itself
constexpr size_t kBins = 24;
constexpr size_t kFewest = 8;  ///< devices that a metric is compared over

bool startsWith(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

/// What suffers together, by what the metric's plugin measures.
std::string classOf(const FigureKey& key) {
  if (startsWith(key.metric, "compute.") || startsWith(key.metric, "train.")) return "compute-bound";
  if (key.metric == "memory.bandwidth" || key.metric == "memory.latency") return "memory-bound";
  if (startsWith(key.metric, "memory.host") || startsWith(key.metric, "memory.device_to") ||
      startsWith(key.metric, "memory.peer") || startsWith(key.metric, "collective.") ||
      startsWith(key.metric, "ring.") || startsWith(key.metric, "rdma."))
    return "link-bound";
  return "";
}

/// Whether peers say something about a metric: what is judged or is heat, power or clocks; not how long a
/// test took.
bool tells(const FigureKey& key) {
  if (key.metric == "env.temperature" || key.metric == "env.memory_temperature" ||
      key.metric == "env.power" || key.metric == "env.clock")
    return true;
  return !key.informational && key.unit != "ratio" && key.direction != Direction::kNone;
}

PeerMetric metricOf(const FigureKey& key) {
  PeerMetric metric;
  FigureKey shown = key;
  shown.labels.erase("peer");
  metric.name = shown.text();
  metric.unit = key.unit;
  metric.direction = key.direction;
  metric.metricClass = key.direction == Direction::kNone ? "" : classOf(key);
  if (key.unit == "degC") {
    metric.comparison = Comparison::kAbsolute;
    metric.floor = 1.0;
  }
  return metric;
}

/// Which figures are one column, for all tables: keys without `peer`, in the order of their text.
struct Columns {
  std::vector<int> ofKey;         ///< -1: none
  std::vector<uint32_t> example;  ///< one key of each column
};

Columns columnsOf(const FleetNames& names) {
  std::map<std::string, std::vector<uint32_t>> byText;
  for (uint32_t i = 0; i < names.figures.size(); ++i) {
    const FigureKey& key = names.figures[i];
    if (!tells(key)) continue;
    FigureKey shown = key;
    shown.labels.erase("peer");
    byText[fmt::format("{}\n{}\n{}", shown.text(), shown.caseId, shown.unit)].push_back(i);
  }
  Columns columns;
  columns.ofKey.assign(names.figures.size(), -1);
  for (auto& [text, keys] : byText) {
    // Of the keys that differ in `peer`, the one with the least text: the numbers depend on the reading
    // threads.
    std::sort(keys.begin(), keys.end(),
              [&](uint32_t a, uint32_t b) { return names.figures.textOf(a) < names.figures.textOf(b); });
    for (const uint32_t key : keys) columns.ofKey[key] = static_cast<int>(columns.example.size());
    columns.example.push_back(keys.front());
  }
  return columns;
}

class TableBuilder {
 public:
  TableBuilder(const FleetRecords& records, const FleetNodes& nodes)
      : records_(records), nodes_(nodes), columns_(columnsOf(*records.names)) {}

  std::vector<PeerTable> build() {
    std::map<std::pair<std::string, size_t>, std::vector<size_t>> groups;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (!nodes_[i].records.empty() && nodes_[i].devices > 0)
        groups[{nodes_[i].sku, nodes_[i].devices}].push_back(i);
    std::vector<PeerTable> tables;
    for (const auto& [key, nodes] : groups)
      for (const bool nodeWide : {false, true}) {
        PeerTable table = tableOf(key.first, nodes, nodeWide);
        if (!nodeWide || !table.keys.empty()) tables.push_back(std::move(table));
      }
    return tables;
  }

 private:
  PeerTable tableOf(const std::string& sku, const std::vector<size_t>& nodes, bool nodeWide) const {
    PeerTable table;
    table.nodeWide = nodeWide;
    table.group.name = sku;
    table.nodes = nodes;
    const size_t width = columns_.example.size();
    for (const size_t i : nodes) {
      PeerNode node{nodes_[i].name, {}};
      if (nodeWide)
        node.devices = {kNoDevice};
      else
        for (const DeviceIdentity& device : records_.nodes[nodes_[i].records.front()].devices)
          if (device.kind != "other") node.devices.push_back(device.id);
      const size_t row = table.group.values.size();
      table.group.values.resize(row + node.devices.size() * width, kNaN);
      fill(nodes_[i], node.devices, table.group.values.data() + row);
      table.group.nodes.push_back(std::move(node));
    }
    keepColumns(table);
    return table;
  }

  /// Writes the figures of one node, row by row. Pairs of one device become their median.
  void fill(const FleetNode& node, const std::vector<std::string>& devices, double* rows) const {
    const size_t width = columns_.example.size();
    std::map<size_t, std::vector<double>> several;
    for (const size_t r : node.records) {
      const NodeSummary& record = records_.nodes[r];
      for (const Figure& figure : record.figures) {
        const int column = columns_.ofKey[figure.key];
        if (column < 0) continue;
        const std::string& id =
            figure.device < 0 ? kNoDevice : record.devices[static_cast<size_t>(figure.device)].id;
        const auto at = std::find(devices.begin(), devices.end(), id);
        if (at == devices.end()) continue;
        const size_t cell = static_cast<size_t>(at - devices.begin()) * width + static_cast<size_t>(column);
        if (std::isnan(rows[cell])) {
          rows[cell] = figure.median;
          continue;
        }
        auto& list = several[cell];
        if (list.empty()) list.push_back(rows[cell]);
        list.push_back(figure.median);
      }
    }
    for (auto& [cell, list] : several) rows[cell] = medianOf(list);
  }

  /// Drops columns that nobody has, or whose median is not above zero.
  void keepColumns(PeerTable& table) const {
    const size_t width = columns_.example.size();
    const size_t rows = width == 0 ? 0 : table.group.values.size() / width;
    std::vector<size_t> kept;
    std::vector<double> column;
    for (size_t c = 0; c < width; ++c) {
      column.clear();
      for (size_t r = 0; r < rows; ++r)
        if (const double x = table.group.values[r * width + c]; !std::isnan(x)) column.push_back(x);
      // What the first rank alone reports for its whole group has no peers.
      if (column.empty() || (column.size() < kFewest && rows >= kFewest) || !(medianOf(column) > 0)) continue;
      kept.push_back(c);
      table.keys.push_back(columns_.example[c]);
      table.group.metrics.push_back(metricOf(records_.names->figures[columns_.example[c]]));
    }
    size_t to = 0;
    for (size_t r = 0; r < rows; ++r)
      for (const size_t c : kept) table.group.values[to++] = table.group.values[r * width + c];
    table.group.values.resize(to);
  }

  const FleetRecords& records_;
  const FleetNodes& nodes_;
  Columns columns_;
};

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

Distribution describe(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  Distribution d;
  d.n = values.size();
  d.low = values.front();
  d.high = values.back();
  d.median = medianOf(values);
  d.q05 = quantile(values, 0.05);
  d.q95 = quantile(values, 0.95);
  d.bins.assign(kBins, 0);
  const double step = (d.high - d.low) / kBins;
  for (const double x : values)
    ++d.bins[step > 0 ? std::min(kBins - 1, static_cast<size_t>((x - d.low) / step)) : 0];
  for (double& x : values) x = std::fabs(x - d.median);
  d.spread = kMadToSigma * medianOf(values);
  return d;
}

}  // namespace

std::vector<PeerTable> peerTables(const FleetRecords& records, const FleetNodes& nodes) {
  return TableBuilder(records, nodes).build();
}

namespace {

/// A figure and how far a device may stay behind it, as a share.
struct Wanted {
  double figure = 0;
  double tolerance = 0;

  /// The figure that is just good enough.
  [[nodiscard]] double edge(Direction direction) const {
    return direction == Direction::kLower ? figure * (1 + tolerance) : figure * (1 - tolerance);
  }
};

std::optional<Wanted> wantedBy(const Expectation& e, const FigureKey& key, const ProfileFigures& profile) {
  // What only warns does not say what a healthy device must reach.
  if (e.severity != Severity::kFail || e.metric != key.metric || !labelsMatch(key.labels, e.where))
    return std::nullopt;
  const bool higher = key.direction == Direction::kHigher;
  switch (e.kind) {
    case CheckKind::kMin:
      return higher ? std::optional(Wanted{e.limit, 0}) : std::nullopt;
    case CheckKind::kMax:
      return higher ? std::nullopt : std::optional(Wanted{e.limit, 0});
    case CheckKind::kBaseline:
      return Wanted{e.limit, e.tolerance};
    case CheckKind::kOfPeak: {
      const auto peak = profile.peaks.find(key.peak);
      return peak == profile.peaks.end() ? std::nullopt : std::optional(Wanted{e.limit * peak->second, 0});
    }
    default:
      return std::nullopt;  // peers, spread and texts are no figure
  }
}

/// The profile that most nodes of the table were judged by; nodes of one SKU may have had different editions.
const ProfileFigures* profileOf(const PeerTable& table, const FleetRecords& records,
                                const FleetOptions& options, const FleetNodes& nodes) {
  std::map<std::string, size_t> votes;
  for (const size_t node : table.nodes) ++votes[records.nodes[nodes[node].records.front()].profileSha256];
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end()) return nullptr;
  const auto found = options.profiles.find(most->first);
  return found == options.profiles.end() ? nullptr : &found->second;
}

}  // namespace

void addExpected(PeerTable& table, const FleetRecords& records, const FleetOptions& options,
                 const FleetNodes& nodes) {
  const ProfileFigures* profile = profileOf(table, records, options, nodes);
  if (profile == nullptr) return;
  for (size_t c = 0; c < table.keys.size(); ++c) {
    const FigureKey& key = records.names->figures[table.keys[c]];
    if (key.direction == Direction::kNone) continue;
    PeerMetric& metric = table.group.metrics[c];
    for (const Expectation& e : profile->expectations) {
      const std::optional<Wanted> wanted = wantedBy(e, key, *profile);
      if (!wanted || !(wanted->figure > 0)) continue;
      const Wanted now{metric.expected, metric.tolerance};
      const double stricter = wanted->edge(key.direction) - now.edge(key.direction);
      if (!std::isnan(now.figure) && (key.direction == Direction::kHigher ? stricter <= 0 : stricter >= 0))
        continue;
      metric.expected = wanted->figure;
      metric.tolerance = wanted->tolerance;
    }
  }
}

std::vector<Distribution> distributionsOf(const PeerTable& table, const FleetRecords& records) {
  std::vector<Distribution> all;
  const size_t width = table.keys.size();
  std::vector<double> values;
  for (size_t c = 0; c < width; ++c) {
    values.clear();
    for (size_t i = c; i < table.group.values.size(); i += width)
      if (!std::isnan(table.group.values[i])) values.push_back(table.group.values[i]);
    if (values.empty()) continue;
    Distribution d = describe(values);
    d.key = table.keys[c];
    d.name = table.group.metrics[c].name;
    d.sku = table.group.name;
    d.unit = records.names->figures[d.key].unit;
    d.direction = records.names->figures[d.key].direction;
    all.push_back(std::move(d));
  }
  return all;
}

void addWorstShares(const PeerTable& table, const std::vector<Distribution>& distributions,
                    FleetNodes& nodes) {
  const size_t width = table.keys.size();
  size_t row = 0;
  for (size_t n = 0; n < table.nodes.size(); ++n) {
    FleetNode& node = nodes[table.nodes[n]];
    for (const std::string& device : table.group.nodes[n].devices) {
      const double* values = table.group.values.data() + width * row++;
      for (size_t c = 0; c < width; ++c) {
        const PeerMetric& metric = table.group.metrics[c];
        // Heat, power and clocks follow the load; what counts here is how fast a node is.
        if (std::isnan(values[c]) || metric.metricClass.empty() || !(values[c] > 0)) continue;
        const double median = distributions[c].median;
        const double share = metric.direction == Direction::kLower ? median / values[c] : values[c] / median;
        if (node.worstShare <= share) continue;
        node.worstShare = share;
        node.worstFigure = (device.empty() ? "" : device + ", ") + metric.name;
      }
    }
  }
}

}  // namespace muster::fleet
