// SPDX-License-Identifier: Apache-2.0
// Computes the physical maximum of a metric.
#include "runner/sku/physical.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "runner/core/units.h"

namespace muster {
namespace {

/// The figure that the profile asks for by `min`; 0 where it does not.
double wanted(const Profile& profile, std::string_view metric) {
  for (const Expectation& e : profile.expectations)
    if (e.metric == metric && e.kind == CheckKind::kMin) return e.limit;
  return 0;
}

/// Bytes per second of one lane, one way, after line encoding (PCI Express Base Specification; generation 6
/// with FLITs); 0 for a generation that is not known.
double pcieLane(double generation) {
  constexpr double kLanes[] = {0, 250e6, 500e6, 984.6e6, 1969e6, 3938e6, 7563e6};
  const auto at = static_cast<size_t>(std::max(0.0, generation));
  return at < std::size(kLanes) ? kLanes[at] : 0;
}

PhysicalLimit pcie(const Profile& profile, double ways) {
  const double generation = wanted(profile, "env.pcie_link_generation");
  const double width = wanted(profile, "env.pcie_link_width");
  return {ways * width * pcieLane(generation),
          fmt::format("PCIe generation {} x{}, {}, as profile {} states it", generation, width,
                      ways > 1 ? "both ways" : "one way", profile.name)};
}

PhysicalLimit nvlink(const Profile& profile, double ways) {
  const double links = wanted(profile, "env.nvlinks_active");
  const double speed = wanted(profile, "env.nvlink_speed");
  // `min` of a speed is rounded down from what the link runs at (26 of 26.562 GB/s): leave 3% of room.
  return {1.03 * ways * links * speed,
          fmt::format("{} NVLinks of {} and 3%, {}, as profile {} states it", links,
                      formatQuantity(speed, "B/s"), ways > 1 ? "taken together" : "one way", profile.name)};
}

std::string label(const LearnGroup& group, const char* name) {
  const auto at = group.where.find(name);
  return at == group.where.end() ? "" : at->second;
}

/// Inside of a node. NVSwitches that sum up (NVLS) let all_reduce come above its link's rate: algorithm
/// bandwidth is at most rate x n / (n + 1), and bus bandwidth 2 (n - 1) / n of it.
PhysicalLimit collective(const LearnGroup& group, const Profile& profile) {
  if (label(group, "nodes") != "1") return {};
  const double n = std::max(1, profile.deviceCount);
  return nvlink(profile, label(group, "op") == "all_reduce" ? std::max(1.0, 2 * (n - 1) / (n + 1)) : 1);
}

}  // namespace

PhysicalLimit physicalLimit(const LearnGroup& group, const Profile& profile) {
  const auto peak = profile.peaks.find(group.peak);
  if (!group.peak.empty() && peak != profile.peaks.end())
    return {peak->second, fmt::format("peak {} of profile {}", group.peak, profile.name)};
  const std::string& metric = group.metric;
  if (metric == "memory.host_to_device_bandwidth" || metric == "memory.device_to_host_bandwidth")
    return pcie(profile, 1);
  if (metric == "memory.host_bidirectional_bandwidth") return pcie(profile, 2);
  if (metric == "memory.peer_bandwidth") {
    const double ways = label(group, "direction") == "bidirectional" ? 2 : 1;
    return label(group, "link").starts_with("pcie") ? pcie(profile, ways) : nvlink(profile, ways);
  }
  if (metric == "collective.bus_bandwidth" || metric == "collective.large_message_bus_bandwidth")
    return collective(group, profile);
  return {};
}

}  // namespace muster
