// SPDX-License-Identifier: Apache-2.0
// Convolution, batch normalisation, residual and ReLU as one operation: oneDNN convolves, our loops do the
// rest.
#include <fmt/format.h>

#include "kernels/host/nn/matrix_steps.h"

namespace muster::host {
namespace {

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
using dnnl::prop_kind;

class ConvolutionOp : public Op {
 public:
  using Op::Op;
  Status prepare(Plan& plan) override;
  Status bind(Plan& plan) override;
  Status planBackward(Plan& plan) override;
  void forward(Pass pass) override;
  void backward() override;

 private:
  Status makePrimitives(Plan& plan);
  Status makeMemory(Plan& plan);
  [[nodiscard]] bool normalised() const { return layer_.normScale >= 0; }

  WeightSteps steps_;
  ImageBlocks shape_;
  void* convolved_ = nullptr;  ///< what batch normalisation reads
  void* output_ = nullptr;
  BatchNormData norm_;
  BatchNormGradient gradient_;
};

Status ConvolutionOp::makePrimitives(Plan& plan) {
  const Convolution& spec = layer_.convolution;
  const Value& x = plan.of(layer_.inputs[0]);
  const memory::desc& source = steps_.sourceDesc = x.desc;
  const memory::desc& output = steps_.outputDesc = plan.imageDesc(plan.network.shape(layer_.output));
  const memory::dims shape = {spec.channels, x.desc.dims()[1], spec.kernel, spec.kernel};
  const memory::desc weights(shape, plan.type, memory::format_tag::any);
  const memory::desc bias = spec.bias ? plain({spec.channels}) : memory::desc();
  const memory::dims strides = {spec.stride, spec.stride};
  const memory::dims padding = {spec.padding, spec.padding};
  const dnnl::engine& engine = plan.engine.engine;
  const dnnl::convolution_forward::primitive_desc forward(
      {prop_kind::forward_training, kAlgorithm, source, weights, bias, output, strides, padding, padding},
      userScratch(), engine);
  const auto gradientOf = [&](const memory::desc& from, const memory::desc& to) {
    const auto describe = [&](const memory::desc& layout) {
      return dnnl::convolution_backward_weights::primitive_desc(
          {kAlgorithm, from, layout, bias, to, strides, padding, padding}, userScratch(), engine, forward);
    };
    return describeGradient(describe, {shape, memory::data_type::f32, memory::format_tag::any},
                            forward.weights_desc());
  };
  auto gradient = gradientOf(source, output);
  // Without AVX-512 oneDNN has no code for blocks of images smaller than their kernel, only a general one at
  // a hundredth of the speed. Where the images are not blocked, it multiplies matrices.
  if (isReference(gradient) && plan.type == memory::data_type::f32) {
    const memory::desc from = plain(source.dims()), to = plain(output.dims());
    if (auto unblocked = gradientOf(from, to); !isReference(unblocked)) {
      gradient = unblocked;
      steps_.readUnblocked(from, to);
    }
  }
  if (!x.needsGradient) return steps_.take(plan, layer_, forward, gradient, nullptr);
  const dnnl::convolution_backward_data::primitive_desc data(
      {kAlgorithm, source, weights, output, strides, padding, padding}, userScratch(), engine, forward);
  return steps_.take(plan, layer_, forward, gradient, &data);
}

Status ConvolutionOp::prepare(Plan& plan) {
  MUSTER_CHECK_OK(makePrimitives(plan));
  shape_ = plan.blocksOf(plan.network.shape(layer_.output));
  return makeMemory(plan);
}

Status ConvolutionOp::makeMemory(Plan& plan) {
  MUSTER_TRY(output_, plan.makeOutput(layer_.output, steps_.outputDesc));
  convolved_ = output_;
  if (!normalised()) return {};
  MUSTER_TRY(convolved_, plan.storage.keep(floatsOf(steps_.outputDesc)));
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
  void* convolvedGradient = incoming_.first;
  Incoming used = incoming_;
  if (norm_.residual != nullptr) {
    if (incoming_.second == nullptr) {
      MUSTER_TRY(used.second, plan.storage.take(floatsOf(steps_.outputDesc)));
    }
    convolvedGradient = const_cast<void*>(used.second);
    used.first = nullptr;
  }
  gradient_.dy = incoming_.first;
  gradient_.more = incoming_.second;
  gradient_.dx = convolvedGradient;
  void* inputGradient = nullptr;
  if (plan.of(layer_.inputs[0]).needsGradient) {
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
  steps_.forward(engine_);
  if (normalised())
    pass == Pass::kTraining ? loops_.batchNormTrain(norm_) : loops_.batchNormEvaluate(norm_);
  else if (layer_.convolution.relu)
    loops_.reluForward(output_, shape_.elements());
}

void ConvolutionOp::backward() {
  gather(shape_.elements());
  if (normalised())
    loops_.batchNormBackward(norm_, gradient_);
  else if (layer_.convolution.relu)
    loops_.reluBackward(output_, incoming_.first, shape_.elements());
  steps_.backward(engine_);
}

}  // namespace

std::unique_ptr<Op> makeConvolution(const Layer& layer, Plan& plan) {
  return std::make_unique<ConvolutionOp>(layer, plan);
}

}  // namespace muster::host
