// SPDX-License-Identifier: Apache-2.0
// The three products with one weight.
#include "kernels/host/nn/matrix_steps.h"

#include <algorithm>

namespace muster::host {
namespace {

/// Room for something reordered, in whole cache lines.
uint64_t roomFor(const memory::desc& desc) {
  return desc.is_zero() ? 0 : (floatsOf(desc) + 15) / 16 * 16;
}

}  // namespace

Product WeightSteps::admit(Plan& plan, const dnnl::primitive_desc& desc, const memory::desc& weights) {
  const std::string kernel = desc.impl_info_str();
  plan.kernels.insert(kernel);
  if (isReference(desc)) reference_ = kernel;
  return {dnnl::primitive(desc), weights, desc.scratchpad_desc()};
}

Status WeightSteps::take(Plan& plan, const Layer& layer, const dnnl::primitive_desc& forward,
                         const dnnl::primitive_desc& gradient, const dnnl::primitive_desc* data) {
  forwardProduct_ = admit(plan, forward, forward.weights_desc());
  gradientProduct_ = admit(plan, gradient, gradient.diff_weights_desc());
  hasData_ = data != nullptr;
  if (hasData_) dataProduct_ = admit(plan, *data, data->weights_desc());
  dataIsMatmul_ = hasData_ && data->get_kind() == dnnl::primitive::kind::matmul;
  const bool half = plan.type == memory::data_type::bf16;
  if (half && !reference_.empty())
    return Error{ErrorCode::kUnsupported,
                 "oneDNN has only its slow reference code (" + reference_ +
                     ") for this layer in bf16; use f32, or multiples of 16 channels",
                 ""};
  stored_ = half ? gradientProduct_.weights : forwardProduct_.weights;
  plan.places[static_cast<size_t>(layer.weight)].desc = stored_;
  uint64_t most = 0;
  for (const Product* product : {&forwardProduct_, &gradientProduct_, &dataProduct_}) {
    if (product == &dataProduct_ && !hasData_) continue;
    if (!(product->weights == stored_)) room_ = std::max(room_, roomFor(product->weights));
    most = std::max(most, roomFor(product->scratch));
  }
  sourceAt_ = room_;
  outputAt_ = sourceAt_ + roomFor(unblockedSource_);
  room_ = outputAt_ + roomFor(unblockedOutput_);
  plan.wantScratch(room_ + most);
  return {};
}

memory WeightSteps::scratch(const Plan& plan, const Product& product) const {
  return wrap(plan.engine, product.scratch, plan.scratch + room_);
}

memory WeightSteps::weightFor(Plan& plan, const Layer& layer, const Product& product,
                              std::vector<Step>& steps) {
  const float* parameter = plan.parameter(layer.weight);
  if (!(product.weights == stored_)) {
    steps.push_back(reorderStep(plan.engine, stored_, parameter, product.weights, plan.scratch));
    parameter = plan.scratch;
  }
  return wrap(plan.engine, product.weights, parameter);
}

memory WeightSteps::unblocked(Plan& plan, const memory::desc& desc, const void* data,
                              const memory::desc& wanted, uint64_t at) {
  if (wanted.is_zero()) return wrap(plan.engine, desc, data);
  backward_.push_back(reorderStep(plan.engine, desc, data, wanted, plan.scratch + at));
  return wrap(plan.engine, wanted, plan.scratch + at);
}

void WeightSteps::bindForward(Plan& plan, const Layer& layer, const void* x, void* y) {
  const memory weight = weightFor(plan, layer, forwardProduct_, forward_);
  Step forward = {forwardProduct_.primitive,
                  {{DNNL_ARG_SRC, wrap(plan.engine, sourceDesc, x)},
                   {DNNL_ARG_WEIGHTS, weight},
                   {DNNL_ARG_DST, wrap(plan.engine, outputDesc, y)},
                   {DNNL_ARG_SCRATCHPAD, scratch(plan, forwardProduct_)}}};
  if (layer.bias >= 0)
    forward.arguments.insert(
        {DNNL_ARG_BIAS, wrap(plan.engine, plain({outputDesc.dims()[1]}), plan.parameter(layer.bias))});
  forward_.push_back(std::move(forward));
}

void WeightSteps::bindBackward(Plan& plan, const Layer& layer, const void* x, const void* dy, void* dx) {
  Engine& engine = plan.engine;
  const memory outputGradient = wrap(engine, outputDesc, dy);
  const memory::desc& given = gradientProduct_.weights;
  const bool direct = given == stored_;
  float* stored = plan.gradient(layer.weight);
  Step weights = {gradientProduct_.primitive,
                  {{DNNL_ARG_SRC, unblocked(plan, sourceDesc, x, unblockedSource_, sourceAt_)},
                   {DNNL_ARG_DIFF_DST, unblocked(plan, outputDesc, dy, unblockedOutput_, outputAt_)},
                   {DNNL_ARG_DIFF_WEIGHTS, wrap(engine, given, direct ? stored : plan.scratch)},
                   {DNNL_ARG_SCRATCHPAD, scratch(plan, gradientProduct_)}}};
  if (layer.bias >= 0)
    weights.arguments.insert(
        {DNNL_ARG_DIFF_BIAS, wrap(engine, plain({outputDesc.dims()[1]}), plan.gradient(layer.bias))});
  backward_.push_back(std::move(weights));
  if (!direct) backward_.push_back(reorderStep(engine, given, plan.scratch, stored_, stored));
  if (!hasData_) return;
  const memory weight = weightFor(plan, layer, dataProduct_, backward_);
  backward_.push_back({dataProduct_.primitive,
                       {{dataIsMatmul_ ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, outputGradient},
                        {DNNL_ARG_WEIGHTS, weight},
                        {dataIsMatmul_ ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, wrap(engine, sourceDesc, dx)},
                        {DNNL_ARG_SCRATCHPAD, scratch(plan, dataProduct_)}}});
}

void WeightSteps::runAll(Engine& engine, const std::vector<Step>& steps) {
  for (const Step& step : steps) step.run(engine);
}

}  // namespace muster::host
