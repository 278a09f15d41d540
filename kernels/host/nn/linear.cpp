// SPDX-License-Identifier: Apache-2.0
// Linear layers: oneDNN's inner product, with activation and residual in a pass behind it.
#include "kernels/host/nn/matrix_steps.h"

namespace muster::host {
namespace {

using dnnl::prop_kind;

/// oneDNN 2.6.3 reads a bias that is not there, address 0, where its AVX-512 inner product shares the outputs
/// of an input gradient among threads: f32, at most 32 inputs, whole 64s of 2048 and more outputs. Such
/// gradients are plain matrix products instead; the bounds here leave room on both sides.
bool needsPlainInputGradient(int64_t inputs, int64_t outputs) {
  return inputs < 64 && outputs >= 1024;
}

class LinearOp : public Op {
 public:
  using Op::Op;
  Status prepare(Plan& plan) override;
  Status bind(Plan& plan) override;
  Status planBackward(Plan& plan) override;
  void forward(Pass pass) override;
  void backward() override;

 private:
  Status makePrimitives(Plan& plan);
  [[nodiscard]] int64_t elements() const { return rows_ * layer_.linear.features; }

  WeightSteps steps_;
  int64_t rows_ = 0;
  void* product_ = nullptr;  ///< before GELU
  void* output_ = nullptr;
  const void* residual_ = nullptr;
};

Status LinearOp::makePrimitives(Plan& plan) {
  const Value& x = plan.of(layer_.inputs[0]);
  const int64_t out = layer_.linear.features;
  const memory::dims shape = {out, plan.network.shape(layer_.inputs[0]).back()};
  const memory::desc& source = steps_.sourceDesc = plain({rows_, shape[1]}, plan.type);
  const memory::desc& output = steps_.outputDesc = plain({rows_, out}, plan.type);
  const memory::desc weights(shape, plan.type, memory::format_tag::any);
  const memory::desc bias = layer_.bias >= 0 ? plain({out}) : memory::desc();
  const dnnl::engine& engine = plan.engine.engine;
  const dnnl::inner_product_forward::primitive_desc forward(
      {prop_kind::forward_training, source, weights, bias, output}, userScratch(), engine);
  const auto describe = [&](const memory::desc& layout) {
    return dnnl::inner_product_backward_weights::primitive_desc({source, layout, bias, output}, userScratch(),
                                                                engine, forward);
  };
  const auto gradient = describeGradient(describe, {shape, memory::data_type::f32, memory::format_tag::any},
                                         forward.weights_desc());
  if (!x.needsGradient) return steps_.take(plan, layer_, forward, gradient, nullptr);
  if (needsPlainInputGradient(shape[1], out)) {
    const dnnl::matmul::primitive_desc data({output, weights, source}, userScratch(), engine);
    return steps_.take(plan, layer_, forward, gradient, &data);
  }
  const dnnl::inner_product_backward_data::primitive_desc data({source, weights, output}, userScratch(),
                                                               engine, forward);
  return steps_.take(plan, layer_, forward, gradient, &data);
}

Status LinearOp::prepare(Plan& plan) {
  rows_ = elementsOf(plan.network.shape(layer_.output)) / layer_.linear.features;
  MUSTER_CHECK_OK(makePrimitives(plan));
  MUSTER_TRY(output_, plan.makeRows(layer_.output));
  product_ = output_;
  if (layer_.linear.activation == Activation::kGelu) {
    MUSTER_TRY(product_, plan.storage.keep(floatsOf(steps_.outputDesc)));
  }
  return {};
}

Status LinearOp::bind(Plan& plan) {
  steps_.bindForward(plan, layer_, plan.of(layer_.inputs[0]).data, product_);
  if (layer_.residual.there()) residual_ = plan.of(layer_.residual).data;
  return {};
}

/// The gradient behind the activation replaces the output's; a residual takes it over as it is.
Status LinearOp::planBackward(Plan& plan) {
  MUSTER_TRY(incoming_, takeGradient(plan, layer_.output, 1));
  void* inputGradient = nullptr;
  if (plan.of(layer_.inputs[0]).needsGradient) {
    MUSTER_TRY(inputGradient, plan.newPart(layer_.inputs[0]));
  }
  steps_.bindBackward(plan, layer_, plan.of(layer_.inputs[0]).data, incoming_.first, inputGradient);
  Incoming used = incoming_;
  if (layer_.residual.there() && plan.of(layer_.residual).needsGradient) {
    plan.of(layer_.residual).parts.push_back(incoming_.first);
    used.first = nullptr;
  }
  giveBack(plan, used);
  return {};
}

void LinearOp::forward(Pass) {
  steps_.forward(engine_);
  if (layer_.linear.activation == Activation::kGelu) loops_.geluForward(product_, output_, elements());
  if (layer_.linear.activation == Activation::kRelu) loops_.reluForward(output_, elements());
  if (residual_ != nullptr) loops_.addTo(output_, residual_, elements());
}

void LinearOp::backward() {
  gather(elements());
  if (layer_.linear.activation == Activation::kGelu)
    loops_.geluBackward(product_, incoming_.first, elements());
  if (layer_.linear.activation == Activation::kRelu)
    loops_.reluBackward(output_, incoming_.first, elements());
  steps_.backward(engine_);
}

}  // namespace

std::unique_ptr<Op> makeLinear(const Layer& layer, Plan& plan) {
  return std::make_unique<LinearOp>(layer, plan);
}

}  // namespace muster::host
