// SPDX-License-Identifier: Apache-2.0
// Peers: which devices and nodes of a group of like SKU stand out from the others. Pure; reports/README.md
// tells the method and its sources.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/metrics/measurement.h"

namespace muster::fleet {

/// How the difference of two figures of a metric is measured.
enum class Comparison {
  kRelative,  ///< as a share of the median: rates, durations; the median must be above 0
  kAbsolute,  ///< in the metric's own unit: temperatures, counts
};

/// One figure that every device of the group should have.
struct PeerMetric {
  std::string name;  ///< for people: "gemm: compute.gemm_throughput (dtype=bf16)"
  std::string unit;  ///< base unit
  Direction direction = Direction::kHigher;
  Comparison comparison = Comparison::kRelative;
  /// The least standard deviation that devices are taken to differ by, a share or in `unit`: a spread below
  /// it is luck.
  double floor = 0.002;
  /// Metrics of one class suffer together ("compute-bound"); empty: looked at alone. A metric without a
  /// direction is always looked at alone.
  std::string metricClass;
  /// What the whole group is expected to have (the profile's figure), or NaN; missed by more than `tolerance`
  /// (a share) in the bad direction, the whole group is an outlier.
  double expected = std::numeric_limits<double>::quiet_NaN();
  double tolerance = 0.05;
};

struct PeerNode {
  std::string name;
  std::vector<std::string> devices;  ///< at least one; a figure of the node itself is a group of its own
};

/// Nodes of like SKU and what was measured on them.
struct PeerGroup {
  std::string name;  ///< the SKU
  std::vector<PeerMetric> metrics;
  std::vector<PeerNode> nodes;
  /// Of every device in the order of `nodes`, one value per metric; NaN where it is missing.
  std::vector<double> values;

  [[nodiscard]] size_t deviceCount() const;
};

struct PeerOptions {
  /// How many healthy devices and nodes a healthy group may have named, on average over many groups.
  double falseNames = 0.007;
  size_t leastDevices = 8;  ///< fewer peers than this, with themselves, are too few to tell
  size_t leastNodes = 5;    ///< fewer nodes than this say nothing about which node is off
};

enum class PeerLevel { kDevice, kNode, kGroup };

/// One metric of an outlier beside its peers.
struct PeerEvidence {
  size_t metric = 0;   ///< index into PeerGroup::metrics
  double value = 0;    ///< of a node: the median of its devices
  double beside = 0;   ///< the median of the group; of a whole group: what was expected
  double off = 0;      ///< (value - beside) / beside, or in the metric's unit if Comparison::kAbsolute
  double z = 0;        ///< standard deviations beyond its peers, in the bad direction
  bool alone = false;  ///< this metric alone suffices to name it
};

/// What stands out.
struct Outlier {
  PeerLevel level = PeerLevel::kDevice;
  size_t node = 0;          ///< index into PeerGroup::nodes; kDevice and kNode
  size_t device = 0;        ///< index into PeerNode::devices; kDevice
  std::string metricClass;  ///< the class that names it as a whole, or empty
  double classOff = 0;      ///< how far it is off over that class, a share in the bad direction
  double z = 0;             ///< of the strongest test, as of a normal distribution
  double falseNames = 0;    ///< how many units so odd a healthy group of this size has on average
  /// Metrics with a direction first, each the strongest first; z of 3 and more, and the strongest always.
  std::vector<PeerEvidence> evidence;
};

/// How much the healthy devices differ in one metric.
struct PeerSpread {
  size_t n = 0;  ///< devices that have it
  double median = 0;
  double mad = 0;          ///< median absolute deviation from the median, in the metric's unit
  double deviceSigma = 0;  ///< standard deviation of devices within their node; a share, or in the unit
  double nodeSigma = 0;    ///< of what the devices of a node have in common; 0: none seen, or too few nodes
  double skew = 0;         ///< of the noise towards the bad side; 0: normal
  double leastNamed = 0;   ///< a device so far off its peers is named for this metric alone; as deviceSigma
};

struct PeerFindings {
  std::vector<Outlier> outliers;    ///< the whole group first, then nodes, then devices, the oddest first
  std::vector<PeerSpread> spreads;  ///< one per metric
  std::vector<std::string> notes;   ///< what could not be told, and why
};

/// Finds what stands out in one group. A device whose figures are missing is judged by those it has. An error
/// where `values` has another size than devices times metrics.
Result<PeerFindings> findOutliers(const PeerGroup& group, const PeerOptions& options = {});

/// Whether an outlier of a device or node stands out of the group also without any one of the other nodes: a
/// single one may make what is usual look narrow. Groups of more than kManyNodes are taken to do so.
Result<bool> isOutlierWithoutAny(const PeerGroup& group, const Outlier& outlier);
inline constexpr size_t kManyNodes = 8;

/// One sentence for people: what was seen, beside whom and how sure, and what to do next.
std::string outlierText(const PeerGroup& group, const Outlier& outlier);

}  // namespace muster::fleet
