// SPDX-License-Identifier: Apache-2.0
// Lists the parts of a node and the changes between two lists.
#include "reports/history/part_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"

namespace muster::history {
namespace {

constexpr std::string_view kSoftware = "software.";
constexpr std::string_view kVbios = "vbios";

/// The facts that a replacement or an upgrade changes, by "gpu3 vbios" or "driver".
std::map<std::string, std::string> versionsOf(const fleet::NodeSummary& node,
                                              const fleet::FleetNames& names) {
  std::map<std::string, std::string> versions;
  for (const fleet::Fact& fact : node.facts) {
    const std::string& name = names.texts[fact.name];
    if (fact.device < 0 && name.starts_with(kSoftware))
      versions[name.substr(kSoftware.size())] = names.texts[fact.value];
    else if (fact.device >= 0 && name == kVbios)
      versions[node.devices[static_cast<size_t>(fact.device)].id + " " + name] = names.texts[fact.value];
  }
  return versions;
}

}  // namespace

std::string NodeParts::placeOf(const std::string& part) const {
  for (const auto& [device, serial] : byDevice)
    if (serial == part) return device;
  return "";
}

NodeParts partsOf(const fleet::NodeSummary& node) {
  std::map<std::string, int> seen;
  for (const auto& device : node.devices) ++seen[device.serial];
  NodeParts parts;
  for (const auto& device : node.devices) {
    const bool hasSerial = !device.serial.empty() && seen[device.serial] == 1;
    const std::string& part = hasSerial ? device.serial : device.uuid;
    if (!part.empty()) parts.byDevice[device.id] = part;
  }
  return parts;
}

std::vector<PartChange> partChanges(const NodeParts& before, const NodeParts& after) {
  std::vector<PartChange> changes;
  for (const auto& [device, part] : before.byDevice) {
    const auto now = after.byDevice.find(device);
    if (now == after.byDevice.end())
      changes.push_back({device, part, "", ""});
    else if (now->second != part)
      changes.push_back({device, part, now->second, ""});
  }
  for (const auto& [device, part] : after.byDevice)
    if (before.byDevice.count(device) == 0) changes.push_back({device, "", part, ""});
  return changes;
}

std::map<std::string, std::vector<PartPlace>> partPlaces(
    const std::vector<std::pair<std::string, NodeParts>>& nodes) {
  std::map<std::string, std::vector<PartPlace>> places;
  for (const auto& [node, parts] : nodes)
    for (const auto& [device, part] : parts.byDevice) places[part].push_back({node, device});
  return places;
}

std::map<std::string, PartPlace> partOwners(const std::vector<std::pair<std::string, NodeParts>>& nodes) {
  std::map<std::string, PartPlace> owners;
  for (const auto& [part, places] : partPlaces(nodes))
    if (places.size() == 1) owners.emplace(part, places.front());
  return owners;
}

std::vector<std::string> softwareChanges(const fleet::NodeSummary& before, const fleet::NodeSummary& after,
                                         const fleet::FleetNames& names) {
  const auto was = versionsOf(before, names), is = versionsOf(after, names);
  std::vector<std::string> changes;
  for (const auto& [name, version] : was) {
    const auto now = is.find(name);
    if (now != is.end() && now->second != version)
      changes.push_back(fmt::format("{}: {} -> {}", printable(name, 80), printable(version, 64),
                                    printable(now->second, 64)));
  }
  return changes;
}

}  // namespace muster::history
