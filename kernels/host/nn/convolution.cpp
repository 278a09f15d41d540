// SPDX-License-Identifier: Apache-2.0
// Convolution, batch normalisation, residual and ReLU as one operation: oneDNN convolves, our loops do the
// rest.
#include <fmt/format.h>

#include "kernels/host/nn/matrix_steps.h"

namespace muster::host {
namespace {

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
using dnnl::prop_kind;

/// The convolution's geometry, as oneDNN wants it.
struct Geometry {
  memory::desc source, output, anyWeights, bias;
  memory::dims strides, padding;
  bool hasBias = false;
};

dnnl::convolution_forward::primitive_desc forwardDesc(const Geometry& g, const dnnl::engine& engine) {
  if (g.hasBias)
    return {{prop_kind::forward_training, kAlgorithm, g.source, g.anyWeights, g.bias, g.output, g.strides,
             g.padding, g.padding},
            userScratch(),
            engine};
  return {{prop_kind::forward_training, kAlgorithm, g.source, g.anyWeights, g.output, g.strides, g.padding,
           g.padding},
          userScratch(),
          engine};
}

using WeightsDesc = dnnl::convolution_backward_weights::primitive_desc;
WeightsDesc weightsDesc(const Geometry& g, const memory::desc& weights, const dnnl::engine& engine,
                        const dnnl::convolution_forward::primitive_desc& hint) {
  if (g.hasBias)
    return {{kAlgorithm, g.source, weights, g.bias, g.output, g.strides, g.padding, g.padding},
            userScratch(),
            engine,
            hint};
  return {{kAlgorithm, g.source, weights, g.output, g.strides, g.padding, g.padding},
          userScratch(),
          engine,
          hint};
}

/// In the layout of the stored weights where oneDNN is fast in it, else in the one it likes best.
WeightsDesc bestWeightsDesc(const Geometry& g, const dnnl::engine& engine,
                            const dnnl::convolution_forward::primitive_desc& hint) {
  WeightsDesc best = weightsDesc(g, g.anyWeights, engine, hint);
  if (best.diff_weights_desc() == hint.weights_desc()) return best;
  try {
    WeightsDesc stored = weightsDesc(g, hint.weights_desc(), engine, hint);
    if (std::string(stored.impl_info_str()) == best.impl_info_str()) return stored;
  } catch (const dnnl::error&) {  // not offered in that layout
  }
  return best;
}

class ConvolutionOp : public Op {
 public:
  using Op::Op;
  Status prepare(Plan& plan) override;
  Status bind(Plan& plan) override;
  Status planBackward(Plan& plan) override;
  void forward(Pass pass) override;
  void backward() override;

 private:
  void makePrimitives(Plan& plan);
  Status makeMemory(Plan& plan);
  [[nodiscard]] bool normalised() const { return layer_.normScale >= 0; }

  Engine* engine_ = nullptr;
  WeightSteps steps_;
  ImageBlocks shape_;
  float* convolved_ = nullptr;  ///< what batch normalisation reads
  float* output_ = nullptr;
  BatchNormData norm_;
  BatchNormGradient gradient_;
  Incoming incoming_;
};

void ConvolutionOp::makePrimitives(Plan& plan) {
  const Convolution& spec = layer_.convolution;
  const Shape& in = plan.network.shape(layer_.inputs[0]);
  const auto f32 = memory::data_type::f32;
  Geometry g;
  g.source = plan.of(layer_.inputs[0]).desc;
  g.output = plan.imageDesc(plan.network.shape(layer_.output));
  g.anyWeights = {{spec.channels, in[1], spec.kernel, spec.kernel}, f32, memory::format_tag::any};
  g.bias = plain({spec.channels});
  g.hasBias = spec.bias;
  g.strides = {spec.stride, spec.stride};
  g.padding = {spec.padding, spec.padding};
  const dnnl::engine& engine = plan.engine.engine;
  const auto forward = forwardDesc(g, engine);
  const auto weights = bestWeightsDesc(g, engine, forward);
  WeightPrimitives& p = steps_.primitives;
  p.forward = dnnl::convolution_forward(forward);
  p.backwardWeights = dnnl::convolution_backward_weights(weights);
  p.weights = forward.weights_desc();
  p.gradient = weights.diff_weights_desc();
  p.forwardScratch = forward.scratchpad_desc();
  p.weightsScratch = weights.scratchpad_desc();
  p.hasData = plan.of(layer_.inputs[0]).needsGradient;
  if (p.hasData) {
    const dnnl::convolution_backward_data::primitive_desc data(
        {kAlgorithm, g.source, g.anyWeights, g.output, g.strides, g.padding, g.padding}, userScratch(),
        engine, forward);
    p.backwardData = dnnl::convolution_backward_data(data);
    p.backwardDataWeights = data.weights_desc();
    p.dataScratch = data.scratchpad_desc();
  }
  steps_.sourceDesc = g.source;
  steps_.outputDesc = g.output;
}

Status ConvolutionOp::prepare(Plan& plan) {
  engine_ = &plan.engine;
  makePrimitives(plan);
  steps_.wantScratch(plan);
  plan.places[static_cast<size_t>(layer_.weight)].desc = steps_.primitives.weights;
  shape_ = plan.blocksOf(plan.network.shape(layer_.output));
  return makeMemory(plan);
}

Status ConvolutionOp::makeMemory(Plan& plan) {
  Value& out = plan.of(layer_.output);
  out.desc = steps_.outputDesc;
  const auto elements = static_cast<uint64_t>(shape_.elements());
  MUSTER_TRY(output_, plan.storage.keep(elements));
  out.data = output_;
  convolved_ = output_;
  if (!normalised()) return {};
  MUSTER_TRY(convolved_, plan.storage.keep(elements));
  const auto channels = static_cast<uint64_t>(shape_.blocks * shape_.lanes);
  MUSTER_TRY(norm_.mean, plan.storage.keep(channels));
  MUSTER_TRY(norm_.inverse, plan.storage.keep(channels));
  // 2 sums of 8 bytes for each image and channel
  MUSTER_TRY(float* scratch, plan.storage.keep(4 * channels * static_cast<uint64_t>(shape_.images)));
  norm_.scratch = reinterpret_cast<double*>(scratch);
  return {};
}

Status ConvolutionOp::bind(Plan& plan) {
  steps_.bindForward(plan, layer_, plan.of(layer_.inputs[0]).data, convolved_);
  if (!normalised()) return {};
  norm_.shape = shape_;
  norm_.x = convolved_;
  norm_.residual = layer_.residual.there() ? plan.of(layer_.residual).data : nullptr;
  norm_.y = output_;
  norm_.scale = plan.parameter(layer_.normScale);
  norm_.shift = plan.parameter(layer_.normShift);
  norm_.runningMean = plan.statistics[static_cast<size_t>(layer_.statistics)].mean;
  norm_.runningVariance = plan.statistics[static_cast<size_t>(layer_.statistics)].variance;
  norm_.epsilon = kNormEpsilon;
  norm_.momentum = kNormMomentum;
  norm_.relu = layer_.convolution.relu;
  gradient_.scale = plan.gradient(layer_.normScale);
  gradient_.shift = plan.gradient(layer_.normShift);
  return {};
}

/// With a residual, the output's gradient (behind ReLU) becomes the residual's. What enters the convolution
/// is written over a part that nobody needs any more.
Status ConvolutionOp::planBackward(Plan& plan) {
  MUSTER_TRY(incoming_, takeGradient(plan, layer_.output, normalised() ? 2 : 1));
  float* convolvedGradient = incoming_.first;
  Incoming used = incoming_;
  if (norm_.residual != nullptr) {
    if (incoming_.second == nullptr) {
      MUSTER_TRY(used.second, plan.storage.take(floatsOf(steps_.outputDesc)));
    }
    convolvedGradient = const_cast<float*>(used.second);
    used.first = nullptr;
  }
  gradient_.dy = incoming_.first;
  gradient_.more = incoming_.second;
  gradient_.dx = convolvedGradient;
  float* inputGradient = nullptr;
  if (steps_.primitives.hasData) {
    MUSTER_TRY(inputGradient, plan.newPart(layer_.inputs[0]));
  }
  steps_.bindBackward(plan, layer_, plan.of(layer_.inputs[0]).data, convolvedGradient, inputGradient);
  if (norm_.residual != nullptr) {
    if (plan.of(layer_.residual).needsGradient)
      plan.of(layer_.residual).parts.push_back(incoming_.first);
    else
      used.first = incoming_.first;
  }
  giveBack(plan, used);
  return {};
}

void ConvolutionOp::forward(Pass pass) {
  steps_.forward(*engine_);
  if (normalised())
    pass == Pass::kTraining ? loops().batchNormTrain(norm_) : loops().batchNormEvaluate(norm_);
  else if (layer_.convolution.relu)
    loops().reluForward(output_, shape_.elements());
}

void ConvolutionOp::backward() {
  incoming_.gather(shape_.elements());
  if (normalised())
    loops().batchNormBackward(norm_, gradient_);
  else if (layer_.convolution.relu)
    loops().reluBackward(output_, incoming_.first, shape_.elements());
  steps_.backward(*engine_);
}

}  // namespace

std::unique_ptr<Op> makeConvolution(const Layer& layer) {
  return std::make_unique<ConvolutionOp>(layer);
}

}  // namespace muster::host
