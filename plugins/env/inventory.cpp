// SPDX-License-Identifier: Apache-2.0
// Test `inventory`: what the node has, as measurements and as the artifact inventory.json that the runner
// reads.
#include "plugins/env/tests.h"

namespace muster::env {

namespace {

class InventoryTest : public sdk::Session {
 public:
  InventoryTest(const sdk::Host& host, Machine machine) : host_(host), machine_(std::move(machine)) {}

  Status run(const Json& /*caseJson*/) override {
    MUSTER_TRY(const std::vector<DeviceInfo> devices, machine_.inventory->devices());
    MUSTER_TRY(Json inventory, machine_.inventory->node());
    inventory["devices"] = Json::array();
    for (const DeviceInfo& device : devices) inventory["devices"].push_back(toJson(device));
    MUSTER_CHECK_OK(host_.artifact("inventory.json", "application/json", dumpJson(inventory, 1)));
    return measure(devices);
  }

 private:
  [[nodiscard]] Status measure(const std::vector<DeviceInfo>& devices) const {
    MUSTER_CHECK_OK(host_.measurement("device_count", "count", {static_cast<double>(devices.size())}));
    for (const DeviceInfo& device : devices) {
      const sdk::Host::LabelList labels{{"device", device.id}};
      MUSTER_CHECK_OK(host_.fact("device_name", device.name, labels));
      MUSTER_CHECK_OK(
          host_.measurement("device_memory", "B", {static_cast<double>(device.memoryBytes)}, labels));
    }
    return {};
  }

  sdk::Host host_;
  Machine machine_;
};

}  // namespace

std::unique_ptr<sdk::Session> makeInventoryTest(const sdk::Host& host, Machine machine) {
  return std::make_unique<InventoryTest>(host, std::move(machine));
}

}  // namespace muster::env
