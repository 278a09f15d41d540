// SPDX-License-Identifier: Apache-2.0
// Training on a simulated device: layers cost what a roofline says, the loss falls as a curve.
#pragma once

#include <memory>
#include <vector>

#include "kernels/interfaces/nn.h"
#include "kernels/sim/sim_device.h"

namespace muster::sim {

class SimNn : public Nn {
 public:
  explicit SimNn(SimDevice& device) : device_(device) {}
  [[nodiscard]] std::vector<Dtype> dtypes() const override;
  [[nodiscard]] bool readsInputs() const override { return false; }
  Result<std::unique_ptr<Program>> compile(const Network& network, const ProgramOptions& options) override;

 private:
  SimDevice& device_;
  std::shared_ptr<uint64_t> backwards_ = std::make_shared<uint64_t>(0);
};

}  // namespace muster::sim
