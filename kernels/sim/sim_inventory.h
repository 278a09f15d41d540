// SPDX-License-Identifier: Apache-2.0
// Inventory and health of a simulated node at a virtual time.
#pragma once

#include <string>
#include <vector>

#include "kernels/interfaces/inventory.h"
#include "kernels/sim/sim_device.h"

namespace muster::sim {

/// The units of one node, in device order; missing devices are taken out and the others numbered anew, as
/// drivers do.
std::vector<SimUnit> buildUnits(const std::shared_ptr<const Scenario>& scenario, int nodeRank,
                                uint64_t runSeed);

/// The places of a node's devices that are there, in device order.
std::vector<int> devicePlaces(const Scenario& scenario, int nodeRank);

class SimInventory : public Inventory {
 public:
  SimInventory(std::shared_ptr<const Scenario> scenario, std::vector<SimUnit> units, int nodeRank,
               int nodeCount, double start)
      : scenario_(std::move(scenario)),
        units_(std::move(units)),
        nodeRank_(nodeRank),
        nodeCount_(nodeCount),
        start_(start) {}

  Result<std::vector<DeviceInfo>> devices() override;
  Result<Json> node() override;
  Result<std::string> link(const std::string& from, const std::string& to) override;
  Result<Readings> health(double at, const std::string& load) override;
  Result<Readings> surroundings(const std::string& folder) override;

 private:
  void readDevice(const SimUnit& unit, double at, bool idle, Readings& out) const;
  void readNics(double at, Readings& out) const;
  void readSwitches(double at, Readings& out) const;

  std::shared_ptr<const Scenario> scenario_;
  std::vector<SimUnit> units_;
  int nodeRank_;
  int nodeCount_;
  double start_;
};

}  // namespace muster::sim
