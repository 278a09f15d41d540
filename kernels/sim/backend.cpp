// SPDX-License-Identifier: Apache-2.0
// The sim backend: opens a scenario and hands out its devices.
#include "kernels/sim/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/sim/scenario/scenario.h"
#include "kernels/sim/sim_communicator.h"
#include "kernels/sim/sim_copies.h"
#include "kernels/sim/sim_device.h"
#include "kernels/sim/sim_inventory.h"
#include "kernels/sim/sim_nn.h"
#include "kernels/sim/sim_ops.h"
#include "kernels/sim/sim_rdma.h"
#include "kernels/sim/sim_storage.h"
#include "runner/core/text.h"

namespace muster::sim {
namespace {

class SimBackend : public Backend {
 public:
  SimBackend(std::shared_ptr<const Scenario> scenario, const BackendOptions& options)
      : scenario_(scenario),
        units_(buildUnits(scenario, options.nodeRank, options.seed)),
        inventory_(std::move(scenario), units_, options.nodeRank, options.nodeCount, options.virtualStart),
        start_(options.virtualStart),
        seed_(options.seed),
        nodeRank_(options.nodeRank) {}

  [[nodiscard]] std::string name() const override { return "sim"; }
  [[nodiscard]] bool virtualTime() const override { return true; }
  Result<Inventory*> inventory() override { return static_cast<Inventory*>(&inventory_); }

  Result<std::unique_ptr<Device>> open(const std::string& deviceId) override {
    auto unit =
        std::find_if(units_.begin(), units_.end(), [&](const SimUnit& u) { return u.info.id == deviceId; });
    if (unit != units_.end() && unit->faults.lost(start_))
      return Error{ErrorCode::kIo, "the simulated device fell off the bus", deviceId};
    if (unit != units_.end()) return std::unique_ptr<Device>(std::make_unique<SimDevice>(*unit, start_));
    return Error{
        ErrorCode::kNotFound,
        fmt::format("the simulated node has no device \"{}\"; it has {}", printable(deviceId), ids()), ""};
  }

  Result<std::unique_ptr<Ops>> ops(Device& device) override {
    auto* own = dynamic_cast<SimDevice*>(&device);
    if (own == nullptr)
      return Error{ErrorCode::kInternal, "this device is not one of the sim backend", device.info().id};
    return std::unique_ptr<Ops>(std::make_unique<SimOps>(*own));
  }

  Result<std::unique_ptr<Nn>> nn(Device& device) override {
    auto* own = dynamic_cast<SimDevice*>(&device);
    if (own == nullptr)
      return Error{ErrorCode::kInternal, "this device is not one of the sim backend", device.info().id};
    return std::unique_ptr<Nn>(std::make_unique<SimNn>(*own));
  }

  Result<std::unique_ptr<Copies>> copies(Device& device) override {
    auto* own = dynamic_cast<SimDevice*>(&device);
    if (own == nullptr)
      return Error{ErrorCode::kInternal, "this device is not one of the sim backend", device.info().id};
    return makeCopies(*own, nodeRank_);
  }

  Result<std::unique_ptr<Rdma>> rdma(const RdmaOptions& /*options*/) override {
    return std::unique_ptr<Rdma>(std::make_unique<SimRdma>(scenario_, nodeRank_, seed_, rdmaClock_));
  }

  std::unique_ptr<SimulatedStorage> simulatedStorage() override {
    return makeStorage(scenario_, nodeRank_, seed_, start_);
  }

  Result<std::unique_ptr<Communicator>> communicator(Device& device, const CommunicatorSpec& spec,
                                                     GroupStore&) override {
    auto* own = dynamic_cast<SimDevice*>(&device);
    if (own == nullptr)
      return Error{ErrorCode::kInternal, "this device is not one of the sim backend", device.info().id};
    return makeCommunicator(*own, spec, seed_, nodeRank_);
  }

 private:
  [[nodiscard]] std::string ids() const {
    std::vector<std::string> names;
    for (const SimUnit& unit : units_) names.push_back(unit.info.id);
    return names.empty() ? "none" : join(names, ", ");
  }

  std::shared_ptr<const Scenario> scenario_;
  std::vector<SimUnit> units_;
  SimInventory inventory_;
  double start_;
  std::shared_ptr<double> rdmaClock_ = std::make_shared<double>(start_);
  uint64_t seed_;
  int nodeRank_;
};

}  // namespace

Result<std::unique_ptr<Backend>> openBackend(const BackendOptions& options) {
  if (options.scenario.empty())
    return Error{ErrorCode::kUsage,
                 "the sim backend needs a scenario: muster run PLAN --simulate SCENARIO.toml", ""};
  MUSTER_TRY(Scenario scenario, loadScenario(options.scenario, options.nodeCount));
  auto shared = std::make_shared<const Scenario>(std::move(scenario));
  return std::unique_ptr<Backend>(std::make_unique<SimBackend>(std::move(shared), options));
}

}  // namespace muster::sim
