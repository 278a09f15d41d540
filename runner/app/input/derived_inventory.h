// SPDX-License-Identifier: Apache-2.0
// Whether the inventory of a record is what the rest of the run says of the node's devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/record/record.h"
#include "runner/sku/profile.h"

namespace muster {

/// The devices that do not match `profile` (nullptr: unknown SKU), as the run tells them.
std::vector<std::string> skuMismatches(const std::vector<DeviceFacts>& devices, const Profile* profile);

/// In what the record's inventory differs from what the inventory stage measured, and the stored number of
/// devices that do not match `ofProfile` (nullptr: unknown SKU; without it not compared) from that of this
/// inventory. Empty: in nothing.
std::vector<std::string> inventoryDifferences(const Record& record,
                                              std::optional<const Profile*> ofProfile = {});

/// Where the facts of another copy of the inventory differ from those of the record: "/devices/7 (record) is
/// missing"; empty: nowhere. What is no object holds no facts.
std::string factsDifference(const Json& inRecord, const Json& other);

}  // namespace muster
