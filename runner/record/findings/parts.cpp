// SPDX-License-Identifier: Apache-2.0
// Reads parts from the free-form inventory.
#include "runner/record/findings/parts.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster {

std::string textAt(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& inventoryPart(const Record& record, const char* key) {
  static const Json kNothing;
  if (!record.inventory.is_object()) return kNothing;
  const auto found = record.inventory.find(key);
  return found == record.inventory.end() ? kNothing : *found;
}

std::string DevicePart::text() const {
  std::vector<std::string> known;
  if (!serial.empty()) known.push_back("serial " + serial);
  if (!address.empty()) known.push_back(address);
  return known.empty() ? id : fmt::format("{} ({})", id, join(known, ", "));
}

std::vector<DevicePart> devicesOf(const Record& record) {
  std::vector<DevicePart> parts;
  const Json& devices = inventoryPart(record, "devices");
  if (!devices.is_array()) return parts;
  for (const Json& device : devices)
    parts.push_back({textAt(device, "id"), textAt(device, "name"), textAt(device, "serial"),
                     textAt(device, "pci_address")});
  return parts;
}

DevicePart deviceOf(const Record& record, const std::string& id) {
  for (DevicePart& part : devicesOf(record))
    if (part.id == id) return std::move(part);
  return {id, "", "", ""};
}

}  // namespace muster
