// SPDX-License-Identifier: Apache-2.0
// Compares the inventory of a resumed run with that of its start.
#include "runner/app/node/inventory_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr const char* kIdentity[] = {"name", "pci_id", "uuid", "serial"};
constexpr const char* kSettings[] = {"vbios", "ecc", "mig", "power_limit"};
constexpr const char* kHardwareIds[] = {"board_serial", "product_serial", "product_uuid", "bmc_guid"};

/// The text at `key`, empty where there is none.
std::string textAt(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json partOf(const Json& facts, const char* key) {
  const auto found = facts.is_object() ? facts.find(key) : facts.end();
  return found == facts.end() ? Json() : *found;
}

/// Name -> value, of one device or NIC.
using Values = std::map<std::string, std::string>;

class Comparison {
 public:
  std::vector<std::string> take() { return std::move(changes_); }

  void compare(const std::string& what, const std::string& before, const std::string& now) {
    const auto shown = [](const std::string& text) { return text.empty() ? "none" : printable(text, 80); };
    if (before != now) changes_.push_back(fmt::format("{}: was {}, is {}", what, shown(before), shown(now)));
  }

  /// Parts that are there only before, or only now, are a change each.
  void compareParts(const std::map<std::string, Values>& before, const std::map<std::string, Values>& now) {
    for (const auto& [id, values] : before) {
      const auto found = now.find(id);
      if (found == now.end()) {
        changes_.push_back(printable(id, 80) + " is missing");
        continue;
      }
      for (const auto& [name, value] : values)
        compare(printable(id, 80) + " " + name, value, found->second.at(name));
    }
    for (const auto& [id, values] : now)
      if (before.count(id) == 0) changes_.push_back(printable(id, 80) + " is new");
  }

 private:
  std::vector<std::string> changes_;
};

std::map<std::string, Values> devicesOf(const Json& facts) {
  std::map<std::string, Values> devices;
  for (const Json& device : partOf(facts, "devices")) {
    Values& values = devices[textAt(device, "id")];
    for (const char* key : kIdentity) values[key] = textAt(device, key);
    for (const char* key : kSettings) values[key] = textAt(partOf(device, "facts"), key);
    // "on, off after a reboot": what is in force counts.
    std::string& ecc = values["ecc"];
    ecc.resize(std::min(ecc.size(), ecc.find(',')));
  }
  return devices;
}

/// Network interfaces come and go with containers and bonds; RDMA devices are parts of the node.
std::map<std::string, Values> hcasOf(const Json& facts) {
  std::map<std::string, Values> hcas;
  for (const Json& nic : partOf(facts, "nics"))
    if (textAt(nic, "kind") == "rdma")
      hcas[textAt(nic, "name")] = {{"node_guid", textAt(nic, "node_guid")},
                                   {"firmware", textAt(nic, "firmware")}};
  return hcas;
}

/// Some ids only root can read. The one of the installed system counts where no other is known: nodes without
/// a disk get a new one at each boot.
void compareHosts(const Json& before, const Json& now, Comparison& comparison) {
  bool known = false;
  const auto compareId = [&](const char* id) {
    const std::string was = textAt(before, id), is = textAt(now, id);
    if (was.empty() || is.empty()) return;
    known = true;
    comparison.compare(fmt::format("host {}", id), was, is);
  };
  for (const char* id : kHardwareIds) compareId(id);
  if (!known) compareId("machine_id");
  comparison.compare("host cpu", textAt(before, "cpu"), textAt(now, "cpu"));
}

}  // namespace

std::vector<std::string> inventoryChanges(const Json& before, const Json& now) {
  Comparison comparison;
  compareHosts(partOf(before, "host"), partOf(now, "host"), comparison);
  comparison.compareParts(devicesOf(before), devicesOf(now));
  comparison.compareParts(hcasOf(before), hcasOf(now));
  comparison.compare("nvidia_driver", textAt(partOf(before, "software"), "nvidia_driver"),
                     textAt(partOf(now, "software"), "nvidia_driver"));
  return comparison.take();
}

}  // namespace muster
