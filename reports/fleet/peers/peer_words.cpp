// SPDX-License-Identifier: Apache-2.0
// Outliers in words: what was seen, beside whom, how sure, and what to do next.
#include <fmt/format.h>

#include <cmath>

#include "reports/fleet/peers/peers.h"
#include "runner/core/units.h"

namespace muster::fleet {
namespace {

constexpr size_t kMostMetrics = 3;  ///< named in a sentence; the rest are counted

std::string who(const PeerGroup& group, const Outlier& outlier) {
  const PeerNode* node = outlier.node < group.nodes.size() ? &group.nodes[outlier.node] : nullptr;
  switch (outlier.level) {
    case PeerLevel::kGroup:
      return fmt::format("all {} nodes of {}", group.nodes.size(), group.name);
    case PeerLevel::kNode:
      return fmt::format("node {}", node->name);
    case PeerLevel::kDevice:
      return fmt::format("{} of {}", node->devices[outlier.device], node->name);
  }
  return "";
}

std::string sizeOf(const PeerMetric& metric, double off, bool share) {
  const char* way = off < 0 ? "below" : "above";
  if (share) return fmt::format("{:.1f}% {}", 100 * std::abs(off), way);
  return fmt::format("{} {}", formatQuantity(std::abs(off), metric.unit, 3), way);
}

std::string besides(const PeerGroup& group, PeerLevel level) {
  switch (level) {
    case PeerLevel::kGroup:
      return "the expected value";
    case PeerLevel::kNode:
      return fmt::format("the median of the {} nodes", group.nodes.size());
    case PeerLevel::kDevice:
      return fmt::format("the median of the {} devices", group.deviceCount());
  }
  return "";
}

std::string evidenceText(const PeerGroup& group, const PeerEvidence& one, PeerLevel level) {
  const PeerMetric& metric = group.metrics[one.metric];
  const bool share = metric.comparison == Comparison::kRelative || level == PeerLevel::kGroup;
  std::string text = fmt::format("{} is {}, {} {} ({}", metric.name, formatQuantity(one.value, metric.unit),
                                 sizeOf(metric, one.off, share), besides(group, level),
                                 formatQuantity(one.beside, metric.unit));
  return text + (level == PeerLevel::kGroup ? ")" : fmt::format(", {:.1f} sigma)", one.z));
}

/// How often a healthy fleet of this size shows as much.
std::string sureness(const Outlier& outlier) {
  if (outlier.falseNames > 1e-3)
    return fmt::format("expected by chance in 1 of {:.0f} healthy fleets", 1 / outlier.falseNames);
  return "expected by chance in under 1 in 1,000 healthy fleets";
}

const char* nextStep(PeerLevel level) {
  switch (level) {
    case PeerLevel::kGroup:
      return "Check causes shared by all nodes: power caps, clocks, driver, firmware, room cooling.";
    case PeerLevel::kNode:
      return "Rerun the stage on this node alone; then check what its devices share: power, cooling, host, "
             "PCIe settings, firmware.";
    case PeerLevel::kDevice:
      return "Rerun the stage on this device alone; if it recurs, compare its clocks, power and temperature "
             "with its neighbours, then replace it.";
  }
  return "";
}

}  // namespace

std::string outlierText(const PeerGroup& group, const Outlier& outlier) {
  std::string text = who(group, outlier);
  if (!outlier.metricClass.empty())
    text += fmt::format(": {:.1f}% {} than its peers over {} metrics", 100 * std::abs(outlier.classOff),
                        outlier.classOff > 0 ? "worse" : "better",
                        outlier.metricClass == "all" ? "all" : "all " + outlier.metricClass);
  size_t told = 0;
  for (const PeerEvidence& one : outlier.evidence) {
    if (told++ == kMostMetrics) break;
    text += (told == 1 ? ": " : "; ") + evidenceText(group, one, outlier.level);
  }
  if (outlier.evidence.size() > kMostMetrics)
    text += fmt::format("; and {} more metrics", outlier.evidence.size() - kMostMetrics);
  if (outlier.level != PeerLevel::kGroup) text += "; " + sureness(outlier);
  return text + ". " + nextStep(outlier.level);
}

}  // namespace muster::fleet
