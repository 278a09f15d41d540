// SPDX-License-Identifier: Apache-2.0
// A weight and the three products with it (forward, gradient of the weight, gradient of the input): shared by
// convolutions and linear layers.
#pragma once

#include "kernels/host/nn/op.h"

namespace muster::host {

/// oneDNN's choices for one weight.
struct WeightPrimitives {
  dnnl::primitive forward, backwardWeights, backwardData;
  memory::desc weights;              ///< as stored: what forward wants
  memory::desc gradient;             ///< as backwardWeights gives it
  memory::desc backwardDataWeights;  ///< as backwardData wants it
  memory::desc forwardScratch, weightsScratch, dataScratch;
  bool hasData = false;  ///< whether the input wants a gradient
};

/// Runs the products over one weight; where a product wants the weight in another order than the stored one,
/// it is reordered in scratch memory.
class WeightSteps {
 public:
  WeightPrimitives primitives;
  memory::desc sourceDesc, outputDesc;

  void wantScratch(Plan& plan) const;
  void bindForward(Plan& plan, const Layer& layer, const float* x, float* y);
  void bindBackward(Plan& plan, const Layer& layer, const float* x, const float* dy, float* dx);
  void forward(Engine& engine) const { forward_.run(engine); }
  void backward(Engine& engine) const;

 private:
  Step forward_;
  std::vector<Step> backward_;
};

}  // namespace muster::host
