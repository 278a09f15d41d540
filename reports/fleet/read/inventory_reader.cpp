// SPDX-License-Identifier: Apache-2.0
// Reads the inventory of a record.
#include "reports/fleet/read/inventory_reader.h"

#include <algorithm>
#include <array>

namespace muster::fleet {
namespace {

constexpr size_t kMostFacts = 1000;
constexpr int kDeepestFact = 6;

/// Last parts of names that differ from machine to machine, from rack to rack, or from minute to minute.
constexpr std::array kOwn = {
    "hostname",     "boot_id",  "machine_id",   "serial",    "uuid",      "pci_address", "address",
    "mac",          "ip",       "guid",         "node_guid", "port_guid", "gid",         "lid",
    "index",        "id",       "simulated",    "uptime",    "time",      "free",        "available",
    "used",         "cpus",     "board_serial", "minor",     "handle",    "gpu_uuid",    "product_serial",
    "product_uuid", "bmc_guid", "fabric_clique"};

/// Also what the inventory measures, such as clock_measured: a value of its own at every look.
bool isOwn(std::string_view name) {
  return name.ends_with("_measured") ||
         std::any_of(kOwn.begin(), kOwn.end(), [&](std::string_view own) { return own == name; });
}

class Flattener {
 public:
  Flattener(NodeSummary& node, StageReader& names) : node_(node), names_(names) {}

  /// Adds every scalar below `element`, which has the name `whole`; items of lists are numbered.
  void add(const std::string& whole, const dom::element& element, int16_t device, int depth = 0) {
    if (depth > kDeepestFact || isFull()) return;
    const std::string name = bounded(whole, kFactBytes);  // it is repeated for all that is below it
    if (dom::object object; element.get(object) == simdjson::SUCCESS) {
      for (const auto& [key, value] : object) {
        if (isFull()) return;
        if (!isOwn(key))
          add(name.empty() ? std::string(key) : name + "." + std::string(key), value, device, depth + 1);
      }
      return;
    }
    if (dom::array array; element.get(array) == simdjson::SUCCESS) {
      size_t number = 0;
      for (const dom::element item : array) {
        if (isFull()) return;
        add(fmt::format("{}[{}]", name, number++), item, device, depth + 1);
      }
      return;
    }
    std::string_view text;
    const std::string value =
        element.get(text) == simdjson::SUCCESS ? bounded(text, kFactBytes) : simdjson::minify(element);
    node_.facts.push_back({device, names_.text(name), names_.text(value)});
  }

 private:
  [[nodiscard]] bool isFull() const { return node_.facts.size() >= kMostFacts; }

  NodeSummary& node_;
  StageReader& names_;
};

std::string textOf(const dom::object& object, std::string_view key) {
  std::string_view text;
  return object.at_key(key).get(text) == simdjson::SUCCESS ? bounded(text, kFactBytes) : std::string();
}

void readDevice(const dom::object& object, NodeSummary& node, Flattener& facts, Failures& failures) {
  DeviceIdentity device;
  device.id = textOf(object, "id");
  device.kind = textOf(object, "kind");
  device.name = textOf(object, "name");
  device.uuid = textOf(object, "uuid");
  device.serial = textOf(object, "serial");
  device.pciAddress = textOf(object, "pci_address");
  if (device.id.empty()) return failures.fail("inventory.devices", "holds a device without an id");
  const auto index = static_cast<int16_t>(node.devices.size());
  for (const DeviceIdentity& other : node.devices)
    if (other.id == device.id)
      return failures.fail("inventory.devices", fmt::format("names the device {} twice", device.id));
  node.devices.push_back(std::move(device));
  for (const auto& [key, value] : object) {
    // Peaks are the profile's business, and the facts below `facts` need no such prefix.
    if (isOwn(key) || key == "peaks" || key == "kind") continue;
    facts.add(key == "facts" ? std::string() : std::string(key), value, index);
  }
}

void readMachine(const dom::element& host, MachineIds& machine) {
  dom::object object;
  if (host.get(object) != simdjson::SUCCESS) return;
  machine.machineId = textOf(object, "machine_id");
  machine.boardSerial = textOf(object, "board_serial");
  machine.productSerial = textOf(object, "product_serial");
  machine.productUuid = textOf(object, "product_uuid");
  machine.bmcGuid = textOf(object, "bmc_guid");
}

}  // namespace

void readInventory(const dom::object& inventory, NodeSummary& node, StageReader& names,
                   const ReadLimits& limits, Failures& failures) {
  Flattener facts(node, names);
  for (const auto& [key, value] : inventory) {
    if (key == "host") readMachine(value, node.machine);
    if (key != "devices") {
      facts.add(std::string(key), value, -1);
      continue;
    }
    dom::array devices;
    if (value.get(devices) != simdjson::SUCCESS) return failures.fail("inventory.devices", "must be a list");
    for (const dom::element item : devices) {
      dom::object device;
      if (item.get(device) != simdjson::SUCCESS) return failures.fail("inventory.devices", "holds no object");
      if (node.devices.size() >= limits.devices)
        return failures.fail("inventory.devices", fmt::format("holds more than {} devices", limits.devices));
      readDevice(device, node, facts, failures);
    }
  }
  node.facts.push_back({-1, names.text("device count"), names.text(std::to_string(node.devices.size()))});
  node.facts.shrink_to_fit();
}

}  // namespace muster::fleet
