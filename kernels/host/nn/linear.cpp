// SPDX-License-Identifier: Apache-2.0
// Linear layers: oneDNN's inner product, with activation and residual in a pass behind it.
#include "kernels/host/nn/matrix_steps.h"

namespace muster::host {
namespace {

using dnnl::prop_kind;

class LinearOp : public Op {
 public:
  using Op::Op;
  Status prepare(Plan& plan) override;
  Status bind(Plan& plan) override;
  Status planBackward(Plan& plan) override;
  void forward(Pass pass) override;
  void backward() override;

 private:
  void makePrimitives(Plan& plan);
  [[nodiscard]] int64_t elements() const { return rows_ * layer_.linear.features; }

  Engine* engine_ = nullptr;
  WeightSteps steps_;
  int64_t rows_ = 0;
  float* product_ = nullptr;  ///< before GELU
  float* output_ = nullptr;
  const float* residual_ = nullptr;
  Incoming incoming_;
};

using Forward = dnnl::inner_product_forward;
using BackwardWeights = dnnl::inner_product_backward_weights;
using BackwardData = dnnl::inner_product_backward_data;

void LinearOp::makePrimitives(Plan& plan) {
  const int64_t in = plan.network.shape(layer_.inputs[0]).back();
  const int64_t out = layer_.linear.features;
  const memory::desc source = plain({rows_, in});
  const memory::desc output = plain({rows_, out});
  const memory::desc any({out, in}, memory::data_type::f32, memory::format_tag::any);
  const memory::desc bias = layer_.bias >= 0 ? plain({out}) : memory::desc();
  const dnnl::engine& engine = plan.engine.engine;
  const Forward::primitive_desc forward({prop_kind::forward_training, source, any, bias, output},
                                        userScratch(), engine);
  const auto weightsIn = [&](const memory::desc& layout) {
    return BackwardWeights::primitive_desc({source, layout, bias, output}, userScratch(), engine, forward);
  };
  BackwardWeights::primitive_desc weights = weightsIn(any);
  if (!(weights.diff_weights_desc() == forward.weights_desc())) {
    try {
      const auto stored = weightsIn(forward.weights_desc());
      if (std::string(stored.impl_info_str()) == weights.impl_info_str()) weights = stored;
    } catch (const dnnl::error&) {  // not offered in that layout
    }
  }
  WeightPrimitives& p = steps_.primitives;
  p.forward = Forward(forward);
  p.backwardWeights = BackwardWeights(weights);
  p.weights = forward.weights_desc();
  p.gradient = weights.diff_weights_desc();
  p.forwardScratch = forward.scratchpad_desc();
  p.weightsScratch = weights.scratchpad_desc();
  p.hasData = plan.of(layer_.inputs[0]).needsGradient;
  if (p.hasData) {
    const BackwardData::primitive_desc data({source, any, output}, userScratch(), engine, forward);
    p.backwardData = BackwardData(data);
    p.backwardDataWeights = data.weights_desc();
    p.dataScratch = data.scratchpad_desc();
  }
  steps_.sourceDesc = source;
  steps_.outputDesc = output;
}

Status LinearOp::prepare(Plan& plan) {
  engine_ = &plan.engine;
  rows_ = elementsOf(plan.network.shape(layer_.output)) / layer_.linear.features;
  makePrimitives(plan);
  steps_.wantScratch(plan);
  plan.places[static_cast<size_t>(layer_.weight)].desc = steps_.primitives.weights;
  Value& out = plan.of(layer_.output);
  out.desc = plain(plan.network.shape(layer_.output));
  MUSTER_TRY(output_, plan.storage.keep(static_cast<uint64_t>(elements())));
  out.data = output_;
  product_ = output_;
  if (layer_.linear.activation == Activation::kGelu) {
    MUSTER_TRY(product_, plan.storage.keep(static_cast<uint64_t>(elements())));
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
  float* inputGradient = nullptr;
  if (steps_.primitives.hasData) {
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
  steps_.forward(*engine_);
  if (layer_.linear.activation == Activation::kGelu) loops().geluForward(product_, output_, elements());
  if (layer_.linear.activation == Activation::kRelu) loops().reluForward(output_, elements());
  if (residual_ != nullptr) loops().addTo(output_, residual_, elements());
}

void LinearOp::backward() {
  incoming_.gather(elements());
  if (layer_.linear.activation == Activation::kGelu)
    loops().geluBackward(product_, incoming_.first, elements());
  if (layer_.linear.activation == Activation::kRelu)
    loops().reluBackward(output_, incoming_.first, elements());
  steps_.backward(*engine_);
}

}  // namespace

std::unique_ptr<Op> makeLinear(const Layer& layer) {
  return std::make_unique<LinearOp>(layer);
}

}  // namespace muster::host
