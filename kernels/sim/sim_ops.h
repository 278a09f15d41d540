// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication of a simulated device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/interfaces/ops.h"
#include "kernels/sim/sim_device.h"

namespace muster::sim {

class SimOps : public Ops {
 public:
  explicit SimOps(SimDevice& device) : device_(device) {}
  [[nodiscard]] std::vector<Dtype> gemmDtypes() const override;
  [[nodiscard]] std::vector<std::string> gemmAlgorithms(Dtype dtype) const override;
  Result<std::unique_ptr<Gemm>> gemm(const GemmSpec& spec) override;

 private:
  SimDevice& device_;
};

}  // namespace muster::sim
