// SPDX-License-Identifier: Apache-2.0
// The parts of a node as its inventory names them: what a finding, a waiver and a bill of materials speak of.
#pragma once

#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

struct DevicePart {
  std::string id;       ///< "gpu5"
  std::string name;     ///< "NVIDIA H100 80GB HBM3"
  std::string serial;   ///< empty where the inventory has none
  std::string address;  ///< on the bus, "0000:72:00.0"

  /// "gpu5 (serial 1329502444170, 0000:72:00.0)"; parts that are unknown are left out.
  [[nodiscard]] std::string text() const;
};

/// All devices of the inventory, in its order.
std::vector<DevicePart> devicesOf(const Record& record);

/// The device `id`; of one that the inventory lacks only the id is known.
DevicePart deviceOf(const Record& record, const std::string& id);

/// A text of an object; empty where there is none.
std::string textAt(const Json& object, const char* key);

/// The list or object `key` of the inventory; null where there is none.
const Json& inventoryPart(const Record& record, const char* key);

}  // namespace muster
