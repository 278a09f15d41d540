// SPDX-License-Identifier: Apache-2.0
// Detects outlier devices and nodes of a group of like SKU.
#include "reports/fleet/peers/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "reports/fleet/peers/node_component.h"
#include "reports/fleet/peers/peer_level.h"
#include "runner/core/statistics.h"
#include "runner/core/units.h"

namespace muster::fleet {
namespace {

constexpr double kNoteworthy = 3;   ///< standard deviations of what is told beside the strongest
constexpr size_t kFewDevices = 32;  ///< fewer than this get a note
constexpr double kDiffers = 5;  ///< standard deviations between nodes that are too few to tell which is off

/// The search through one group.
PeerGroup withoutNode(const PeerGroup& group, size_t left) {
  PeerGroup rest{group.name, group.metrics, {}, {}};
  const double* values = group.values.data();
  for (size_t n = 0; n < group.nodes.size(); ++n) {
    const double* end = values + group.nodes[n].devices.size() * group.metrics.size();
    if (n != left) {
      rest.nodes.push_back(group.nodes[n]);
      rest.values.insert(rest.values.end(), values, end);
    }
    values = end;
  }
  return rest;
}

class Search {
 public:
  Search(const PeerGroup& group, const PeerOptions& options) : group_(group), options_(options) {
    for (const PeerNode& node : group.nodes) first_.push_back(first_.back() + node.devices.size());
  }

  PeerFindings run() {
    for (size_t m = 0; m < group_.metrics.size(); ++m) readMetric(m);
    if (usable_.empty()) return std::move(findings_);
    const LevelTests devices = level(false);
    const LevelTests nodes = level(true);
    nameDevices(devices);
    if (nodesCompare()) nameNodes(nodes);
    describeNoise(devices);
    noteFewNodes();
    std::stable_sort(findings_.outliers.begin(), findings_.outliers.end(), [](const auto& a, const auto& b) {
      return a.level != b.level ? a.level > b.level : a.falseNames < b.falseNames;
    });
    return std::move(findings_);
  }

 private:
  [[nodiscard]] double valueOf(size_t device, size_t metric) const {
    return group_.values[device * group_.metrics.size() + metric];
  }
  [[nodiscard]] bool nodesCompare() const {
    return group_.nodes.size() >= options_.leastNodes && first_.back() > group_.nodes.size();
  }

  /// A value so that bad is positive, as it is compared; NaN where it is missing.
  [[nodiscard]] double badOf(size_t device, size_t m) const {
    const PeerMetric& metric = group_.metrics[m];
    const double value = valueOf(device, m);
    if (!std::isfinite(value)) return kNaN;
    const double unit = metric.comparison == Comparison::kRelative ? findings_.spreads[m].median : 1;
    return (metric.direction == Direction::kHigher ? -value : value) / unit;
  }

  std::vector<double> present(size_t begin, size_t end, size_t metric) const {
    std::vector<double> values;
    for (size_t i = begin; i < end; ++i)
      if (std::isfinite(valueOf(i, metric))) values.push_back(valueOf(i, metric));
    return values;
  }

  /// Fills the metric's spread, judges the group as a whole, and takes it apart where there are enough.
  void readMetric(size_t m) {
    const PeerMetric& metric = group_.metrics[m];
    PeerSpread& spread = findings_.spreads.emplace_back();
    std::vector<double> values = present(0, first_.back(), m);
    spread.n = values.size();
    spread.median = medianOf(values);
    spread.mad = madOf(values, spread.median);
    if (spread.n == 0) return note("{}: not measured on any device", metric.name);
    judgeWhole(m);
    if (spread.n < options_.leastDevices)
      return note("{0}: outlier detection needs {2} devices; found {1}", metric.name, spread.n,
                  options_.leastDevices);
    if (metric.comparison == Comparison::kRelative && spread.median <= 0)
      return note(
          "{}: the median of all devices is {:g}, so relative differences are undefined; devices were not "
          "compared",
          metric.name, spread.median);
    takeMetric(m);
  }

  void takeMetric(size_t m) {
    PeerSpread& spread = findings_.spreads[m];
    std::vector<double> bad(first_.back());
    for (size_t i = 0; i < bad.size(); ++i) bad[i] = badOf(i, m);
    NodeParts parts = takeApart(bad, first_, options_.leastNodes);
    spread.deviceSigma = parts.deviceSigma;
    spread.nodeSigma = parts.nodeSigma;
    usable_.push_back(m);
    parts_.push_back(std::move(parts));
  }

  void judgeWhole(size_t m) {
    const PeerMetric& metric = group_.metrics[m];
    const double median = findings_.spreads[m].median;
    if (!std::isfinite(metric.expected) || metric.expected == 0) return;
    if (2 * findings_.spreads[m].n <= group_.deviceCount()) return;  // it is said of all nodes
    const double off = (median - metric.expected) / std::abs(metric.expected);
    const double bad = metric.direction == Direction::kHigher  ? -off
                       : metric.direction == Direction::kLower ? off
                                                               : std::abs(off);
    if (bad <= metric.tolerance) return;
    if (findings_.outliers.empty()) findings_.outliers.emplace_back().level = PeerLevel::kGroup;
    findings_.outliers.front().evidence.push_back({m, median, metric.expected, off, 0, true});
  }

  LevelTests level(bool ofNodes) const {
    std::vector<LevelMetric> metrics;
    for (size_t k = 0; k < usable_.size(); ++k) {
      const PeerMetric& metric = group_.metrics[usable_[k]];
      const NodeParts& parts = parts_[k];
      const bool classed = metric.comparison == Comparison::kRelative;
      metrics.push_back({ofNodes ? parts.node : parts.own, metric.floor,
                         ofNodes ? static_cast<double>(group_.nodes.size()) - 1 : parts.freedom,
                         metric.direction == Direction::kNone, classed ? metric.metricClass : ""});
    }
    return LevelTests(metrics);
  }

  void describeNoise(const LevelTests& devices) {
    const double z = -normalQuantile(options_.falseNames * kDeviceShares.metrics / devices.metricTests());
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (size_t k = 0; k < usable_.size(); ++k) {
      PeerSpread& spread = findings_.spreads[usable_[k]];
      spread.skew = devices.skewOf(k);
      spread.leastNamed = devices.deviationOf(k, z);
      if (group_.metrics[usable_[k]].comparison == Comparison::kAbsolute) continue;
      least = std::min(least, spread.leastNamed);
      most = std::max(most, spread.leastNamed);
    }
    if (first_.back() < kFewDevices && most > 0)
      note(
          "with {} devices, the normal variation is uncertain: a device is flagged for a single metric only "
          "if it deviates by {:.0f}% to {:.0f}%, depending on the metric",
          first_.back(), 100 * least, 100 * most);
  }

  void nameDevices(const LevelTests& level) {
    odd_.assign(first_.back(), false);
    std::vector<double> row(usable_.size());
    for (size_t node = 0; node < group_.nodes.size(); ++node)
      for (size_t i = first_[node]; i < first_[node + 1]; ++i) {
        for (size_t k = 0; k < row.size(); ++k) row[k] = parts_[k].own[i];
        const UnitTests tests = level.test(row);
        const Judged judged = judge(tests, level, kDeviceShares);
        if (judged.falseNames > options_.falseNames) continue;
        odd_[i] = true;
        add(PeerLevel::kDevice, node, i - first_[node], tests, judged, level);
      }
  }

  void nameNodes(const LevelTests& level) {
    std::vector<double> row(usable_.size());
    for (size_t node = 0; node < group_.nodes.size(); ++node) {
      for (size_t k = 0; k < row.size(); ++k) row[k] = parts_[k].node[node];
      if (judge(level.test(row), level, kNodeShares).falseNames > options_.falseNames) continue;
      withoutOddDevices(node, row);
      const UnitTests tests = level.test(row);
      const Judged judged = judge(tests, level, kNodeShares);
      if (judged.falseNames <= options_.falseNames) add(PeerLevel::kNode, node, 0, tests, judged, level);
    }
  }

  /// A node is not odd for a minority of its devices, which are named themselves.
  void withoutOddDevices(size_t node, std::vector<double>& row) const {
    const size_t begin = first_[node];
    const size_t end = first_[node + 1];
    const auto odd = static_cast<size_t>(std::count(odd_.begin() + static_cast<std::ptrdiff_t>(begin),
                                                    odd_.begin() + static_cast<std::ptrdiff_t>(end), true));
    if (odd == 0 || odd * 2 >= end - begin) return;
    for (size_t k = 0; k < row.size(); ++k) {
      std::vector<double> rest;
      for (size_t i = begin; i < end; ++i)
        if (!odd_[i]) rest.push_back(badOf(i, usable_[k]));
      row[k] = commonPart(rest, parts_[k]);
    }
  }

  void add(PeerLevel where, size_t node, size_t device, const UnitTests& tests, const Judged& judged,
           const LevelTests& level) {
    Outlier outlier{where, node, device, "", 0, judged.z, judged.falseNames, {}};
    if (judged.strongestClass && judged.classFalseNames <= options_.falseNames) {
      outlier.metricClass = level.classes()[*judged.strongestClass];
      outlier.classOff = tests.classOff[*judged.strongestClass];
    }
    const double strongest = strongestOf(tests.metricZ);
    for (size_t k = 0; k < usable_.size(); ++k) {
      const double z = tests.metricZ[k];
      if (!std::isfinite(z) || (z < kNoteworthy && z < strongest)) continue;
      const bool alone = judged.metricFalseNames[k] <= options_.falseNames;
      outlier.evidence.push_back(evidence(where, usable_[k], node, device, z, alone));
    }
    // Rates and times before clocks and power, which only say why.
    const auto says = [&](const PeerEvidence& one) {
      return group_.metrics[one.metric].direction != Direction::kNone;
    };
    std::stable_sort(outlier.evidence.begin(), outlier.evidence.end(), [&](const auto& a, const auto& b) {
      return std::pair(says(a), a.z) > std::pair(says(b), b.z);
    });
    findings_.outliers.push_back(std::move(outlier));
  }

  [[nodiscard]] static double strongestOf(const std::vector<double>& z) {
    double strongest = -std::numeric_limits<double>::infinity();
    for (const double one : z)
      if (std::isfinite(one)) strongest = std::max(strongest, one);
    return strongest;
  }

  [[nodiscard]] PeerEvidence evidence(PeerLevel where, size_t m, size_t node, size_t device, double z,
                                      bool alone) const {
    std::vector<double> all = present(first_[node], first_[node + 1], m);
    const double value = where == PeerLevel::kNode ? medianOf(all) : valueOf(first_[node] + device, m);
    const double beside = findings_.spreads[m].median;
    const double off = value - beside;
    const bool share = group_.metrics[m].comparison == Comparison::kRelative;
    return {m, value, beside, share ? off / beside : off, z, alone};
  }

  /// Two to four nodes can differ without it being told which of them is off: that is said.
  void noteFewNodes() {
    if (group_.nodes.size() < 2 || group_.nodes.size() >= options_.leastNodes) return;
    note("{} nodes are too few to detect an outlier node; devices were compared within their node",
         group_.nodes.size());
    for (size_t k = 0; k < usable_.size(); ++k) noteDifference(k);
  }

  void noteDifference(size_t k) {
    const PeerMetric& metric = group_.metrics[usable_[k]];
    std::vector<std::pair<double, size_t>> places;
    double least = static_cast<double>(first_.back());
    for (size_t node = 0; node < group_.nodes.size(); ++node) {
      std::vector<double> values = present(first_[node], first_[node + 1], usable_[k]);
      if (values.empty()) continue;
      least = std::min(least, static_cast<double>(values.size()));
      places.emplace_back(medianOf(values), node);
    }
    if (places.size() < 2) return;
    const auto [low, high] = std::minmax_element(places.begin(), places.end());
    const double unit = metric.comparison == Comparison::kRelative ? findings_.spreads[usable_[k]].median : 1;
    const double sigma = std::max(parts_[k].deviceSigma, metric.floor) * std::sqrt(2 / least);
    const double apart = (high->first - low->first) / unit;
    if (normalFromStudent(apart / sigma, std::max(1.0, parts_[k].freedom)) < kDiffers) return;
    const std::string size = metric.comparison == Comparison::kRelative
                                 ? fmt::format("{:.1f}%", 100 * apart)
                                 : formatQuantity(apart, metric.unit, 3);
    note(
        "{}: {} and {} differ by {}; with {} nodes it is unknown which one is the outlier: compare with the "
        "profile, or test more nodes",
        metric.name, group_.nodes[low->second].name, group_.nodes[high->second].name, size,
        group_.nodes.size());
  }

  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    findings_.notes.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  const PeerGroup& group_;
  const PeerOptions& options_;
  NodeBounds first_ = {0};
  PeerFindings findings_;
  std::vector<size_t> usable_;    ///< metrics that are compared
  std::vector<NodeParts> parts_;  ///< of each of them
  std::vector<bool> odd_;         ///< devices that were named
};

}  // namespace

Result<bool> isOutlierWithoutAny(const PeerGroup& group, const Outlier& outlier) {
  if (group.nodes.size() > kManyNodes) return true;
  PeerOptions options;
  --options.leastNodes;
  for (size_t left = 0; left < group.nodes.size(); ++left) {
    if (left == outlier.node) continue;
    MUSTER_TRY(const PeerFindings found, findOutliers(withoutNode(group, left), options));
    const size_t node = outlier.node - (left < outlier.node ? 1 : 0);
    const bool isNamed = std::any_of(found.outliers.begin(), found.outliers.end(), [&](const Outlier& other) {
      return other.level != PeerLevel::kGroup && other.node == node &&
             (other.level == PeerLevel::kNode || outlier.level == PeerLevel::kNode ||
              other.device == outlier.device);
    });
    if (!isNamed) return false;
  }
  return true;
}

size_t PeerGroup::deviceCount() const {
  size_t count = 0;
  for (const PeerNode& node : nodes) count += node.devices.size();
  return count;
}

Result<PeerFindings> findOutliers(const PeerGroup& group, const PeerOptions& options) {
  const size_t wanted = group.deviceCount() * group.metrics.size();
  if (group.values.size() != wanted)
    return Error{
        ErrorCode::kInternal,
        fmt::format("{} values of {} devices and {} metrics; expected {}, with NaN where one is missing",
                    group.values.size(), group.deviceCount(), group.metrics.size(), wanted),
        "group " + group.name};
  return Search(group, options).run();
}

}  // namespace muster::fleet
