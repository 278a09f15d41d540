// SPDX-License-Identifier: Apache-2.0
// The three products with one weight.
#include "kernels/host/nn/matrix_steps.h"

#include <algorithm>

namespace muster::host {
namespace {

/// Room for a reordered weight, in whole cache lines.
uint64_t roomFor(const memory::desc& desc) {
  return (floatsOf(desc) + 15) / 16 * 16;
}

}  // namespace

void WeightSteps::wantScratch(Plan& plan) const {
  const uint64_t scratch = std::max({floatsOf(primitives.forwardScratch), floatsOf(primitives.weightsScratch),
                                     primitives.hasData ? floatsOf(primitives.dataScratch) : 0});
  const uint64_t room = std::max(roomFor(primitives.gradient),
                                 primitives.hasData ? roomFor(primitives.backwardDataWeights) : 0);
  plan.wantScratch(room + scratch + 16);
}

void WeightSteps::bindForward(Plan& plan, const Layer& layer, const float* x, float* y) {
  forward_ = {primitives.forward,
              {{DNNL_ARG_SRC, wrap(plan.engine, sourceDesc, x)},
               {DNNL_ARG_WEIGHTS, wrap(plan.engine, primitives.weights, plan.parameter(layer.weight))},
               {DNNL_ARG_DST, wrap(plan.engine, outputDesc, y)},
               {DNNL_ARG_SCRATCHPAD, wrap(plan.engine, primitives.forwardScratch, plan.scratch)}}};
  if (layer.bias >= 0)
    forward_.arguments.insert(
        {DNNL_ARG_BIAS, wrap(plan.engine, plain({outputDesc.dims()[1]}), plan.parameter(layer.bias))});
}

void WeightSteps::bindBackward(Plan& plan, const Layer& layer, const float* x, const float* dy, float* dx) {
  Engine& engine = plan.engine;
  const bool direct = primitives.gradient == primitives.weights;
  float* reordered = plan.scratch;
  float* stored = plan.gradient(layer.weight);
  const memory outputGradient = wrap(engine, outputDesc, dy);
  Step weights = {primitives.backwardWeights,
                  {{DNNL_ARG_SRC, wrap(engine, sourceDesc, x)},
                   {DNNL_ARG_DIFF_DST, outputGradient},
                   {DNNL_ARG_DIFF_WEIGHTS, wrap(engine, primitives.gradient, direct ? stored : reordered)},
                   {DNNL_ARG_SCRATCHPAD,
                    wrap(engine, primitives.weightsScratch, plan.scratch + roomFor(primitives.gradient))}}};
  if (layer.bias >= 0)
    weights.arguments.insert(
        {DNNL_ARG_DIFF_BIAS, wrap(engine, plain({outputDesc.dims()[1]}), plan.gradient(layer.bias))});
  backward_.push_back(std::move(weights));
  if (!direct)
    backward_.push_back(reorderStep(engine, primitives.gradient, reordered, primitives.weights, stored));
  if (!primitives.hasData) return;
  const memory::desc& wanted = primitives.backwardDataWeights;
  const float* parameter = plan.parameter(layer.weight);
  if (!(wanted == primitives.weights)) {
    backward_.push_back(reorderStep(engine, primitives.weights, parameter, wanted, reordered));
    parameter = reordered;
  }
  backward_.push_back(
      {primitives.backwardData,
       {{DNNL_ARG_DIFF_DST, outputGradient},
        {DNNL_ARG_WEIGHTS, wrap(engine, wanted, parameter)},
        {DNNL_ARG_DIFF_SRC, wrap(engine, sourceDesc, dx)},
        {DNNL_ARG_SCRATCHPAD, wrap(engine, primitives.dataScratch, plan.scratch + roomFor(wanted))}}});
}

void WeightSteps::backward(Engine& engine) const {
  for (const Step& step : backward_) step.run(engine);
}

}  // namespace muster::host
