// SPDX-License-Identifier: Apache-2.0
// The inventory of a node: taken once through the env plugin, kept in the journal, and judged like a stage.
#pragma once

#include <string>
#include <vector>

#include "runner/app/stage/stage_runner.h"
#include "runner/sku/profile.h"

namespace muster {

/// The name under which the inventory stands in every record; plan stages cannot take it, a plain name has no
/// colon.
inline constexpr const char* kInventoryStage = "muster:inventory";

/// The artifact of the env plugin from which the facts are read.
inline constexpr const char* kInventoryFile = "inventory.json";

/// Result of the inventory.
struct NodeInventory {
  Json facts;           ///< {"host", "software", "nics", "devices"}; null when it could not be taken
  std::string problem;  ///< why it could not be taken; empty when it was
  bool noGpu = false;   ///< the backend's driver or devices are not there
  std::string skuHow;
  std::vector<std::string> skuProblems;  ///< devices that do not match the chosen profile

  [[nodiscard]] std::vector<DeviceFacts> devices() const;
};

Json toJson(const NodeInventory& inventory);
Result<NodeInventory> inventoryFromJson(const Json& json);

/// The stage that takes it. An error when the env plugin cannot be used.
Result<Stage> inventoryStage(const Catalog& catalog);

/// Reads what that stage left.
NodeInventory readInventory(const StageRecord& stage, const StageEvidence& evidence,
                            const std::filesystem::path& folder);

/// Fills devices and peaks of `node` from the inventory and its profile.
void useInventory(const NodeInventory& inventory, bool simulated, NodeProgress& node);

/// Adds the number of devices that the profile wants; without one, at least one.
void expectDeviceCount(const Profile* profile, StageEvidence& evidence);

/// Adds what is expected of the devices: their number, and that all match the profile. Without inventory, the
/// stage's case becomes an error (or stays a skip where no GPU is there).
void expectDevices(const NodeInventory& inventory, const Profile* profile, StageEvidence& evidence);

}  // namespace muster
