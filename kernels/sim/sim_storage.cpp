// SPDX-License-Identifier: Apache-2.0
// The storage of a simulated node.
#include "kernels/sim/sim_storage.h"

#include <algorithm>

#include "kernels/sim/chance.h"

namespace muster::sim {
namespace {

class SimStorage : public SimulatedStorage {
 public:
  SimStorage(std::shared_ptr<const Scenario> scenario, int node, uint64_t runSeed, double start)
      : scenario_(std::move(scenario)), node_(node), seed_(runSeed), clock_(start) {}

  [[nodiscard]] double now() const override { return clock_; }

  StorageFigure run(const StorageLoad& load) override {
    const double bandwidth = load.writes ? model().writeBandwidth : model().readBandwidth;
    const double operations = load.writes ? model().writeOperations : model().readOperations;
    const auto block = static_cast<double>(load.blockSize);
    StorageFigure figure;
    figure.operations = bandwidth / block;
    if (load.random) figure.operations = std::min(operations, figure.operations);
    figure.operations *= speed();
    figure.bandwidth = figure.operations * block;
    // As many operations are under way as the queue is deep (Little's law). Few take much longer.
    figure.latencyP50 = load.queueDepth / figure.operations;
    figure.latencyP99 = figure.latencyP50 * 1.5;
    figure.latencyP999 = figure.latencyP50 * 3;
    clock_ += load.seconds;
    return figure;
  }

  double loadFiles(uint64_t files, uint64_t bytes) override {
    const double rate =
        std::min(model().fileRate, model().readBandwidth / static_cast<double>(bytes)) * speed();
    clock_ += static_cast<double>(files) / rate;
    return rate;
  }

  [[nodiscard]] std::vector<int> nodesApart() const override {
    std::vector<int> nodes;
    for (const StorageFault& fault : model().faults)
      if (fault.apart) nodes.push_back(fault.node);
    return nodes;
  }

 private:
  [[nodiscard]] const StorageModel& model() const { return scenario_->storage; }

  /// Of this node, at this moment. What a node is depends on its place alone.
  [[nodiscard]] double speed() const {
    const auto node = static_cast<uint64_t>(node_);
    const uint64_t place = mix(mix(scatter(scenario_->seed), std::string_view("storage")), node);
    const uint64_t moment = mix(mix(scatter(scenario_->seed ^ seed_), node), clock_);
    double speed = (1 + model().spread * normal(place)) * (1 + model().noise * normal(moment));
    for (const StorageFault& fault : model().faults)
      if (!fault.apart && (fault.node < 0 || fault.node == node_) && clock_ >= fault.from &&
          clock_ < fault.until)
        speed *= fault.factor;
    return speed;
  }

  std::shared_ptr<const Scenario> scenario_;
  int node_;
  uint64_t seed_;
  double clock_;
};

}  // namespace

std::unique_ptr<SimulatedStorage> makeStorage(std::shared_ptr<const Scenario> scenario, int node,
                                              uint64_t runSeed, double start) {
  if (scenario->storage.readBandwidth == 0) return nullptr;
  return std::make_unique<SimStorage>(std::move(scenario), node, runSeed, start);
}

}  // namespace muster::sim
