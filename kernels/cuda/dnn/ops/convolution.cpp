// SPDX-License-Identifier: Apache-2.0
// Convolution, batch normalisation, residual and ReLU as one operation: cuDNN convolves, our kernels do the
// rest.
#include "kernels/cuda/dnn/ops/convolve.h"
#include "kernels/cuda/dnn/ops/op.h"

namespace muster::cuda {
namespace {

class ConvolutionOp : public Op {
 public:
  using Op::Op;
  Status prepare(Plan& plan) override;
  Status bind(Plan& plan) override;
  Status planBackward(Plan& plan) override;
  Status tune() override;
  Status forward(Pass pass) override;
  Status backward() override;

 private:
  Status makeMemory(Plan& plan);
  Status planResidual(Plan& plan);
  Status backwardOfNorm();
  Status backwardOfBias();
  [[nodiscard]] bool normalised() const { return layer_.normScale >= 0; }
  [[nodiscard]] bool relu() const { return layer_.convolution.relu; }

  Engine* engine_ = nullptr;
  ConvolutionShape shape_;
  std::unique_ptr<Convolver> convolver_;
  Columns columns_;  ///< of the output
  const void* x_ = nullptr;
  const void* w_ = nullptr;
  const float* bias_ = nullptr;
  float* biasGradient_ = nullptr;
  const void* residual_ = nullptr;
  void* convolved_ = nullptr;  ///< what batch normalisation reads
  void* y_ = nullptr;
  BatchNormArrays norm_;
  BatchNormGradients gradients_;
  void* dy_ = nullptr;
  void* convolvedGradient_ = nullptr;
  void* residualGradient_ = nullptr;  ///< to be added to; else dy was handed on
  Sink dx_;
  float* filterGradient_ = nullptr;
  void* lowFilterGradient_ = nullptr;  ///< cuDNN's in bf16, scratch
};

Status ConvolutionOp::prepare(Plan& plan) {
  engine_ = &plan.engine;
  const Convolution& spec = layer_.convolution;
  MUSTER_CHECK_OK(plan.makeValue(layer_.output));
  shape_.in = plan.of(layer_.inputs[0]).image;
  shape_.out = plan.of(layer_.output).image;
  shape_.filter = {spec.channels, shape_.in.c, spec.kernel, spec.kernel, shape_.out.padded, shape_.in.padded};
  shape_.stride = spec.stride;
  shape_.padding = spec.padding;
  plan.places[static_cast<size_t>(layer_.weight)].filter = shape_.filter;
  MUSTER_TRY(convolver_, Convolver::make(*engine_, shape_, plan.of(layer_.inputs[0]).needsGradient));
  plan.wantWorkspace(convolver_->workspaceBytes());
  plan.wantScratch(engine_->columnBytes(shape_.out.rows(), shape_.out.padded, 2));
  if (engine_->element == Element::kBf16)
    plan.wantScratch(static_cast<uint64_t>(shape_.filter.paddedElements()) * 2);
  return makeMemory(plan);
}

Status ConvolutionOp::makeMemory(Plan& plan) {
  y_ = plan.of(layer_.output).data;
  convolved_ = y_;
  if (!normalised()) return {};
  MUSTER_TRY(convolved_,
             plan.storage.keep(static_cast<uint64_t>(shape_.out.elements() * plan.bytesPerElement())));
  MUSTER_TRY(void* arrays, plan.storage.keep(static_cast<uint64_t>(6 * shape_.out.padded) * sizeof(float)));
  norm_.mean = static_cast<float*>(arrays);
  norm_.inverse = norm_.mean + shape_.out.padded;
  norm_.factors = norm_.inverse + shape_.out.padded;
  return {};
}

Status ConvolutionOp::bind(Plan& plan) {
  x_ = plan.of(layer_.inputs[0]).data;
  w_ = plan.weight(layer_.weight);
  filterGradient_ = plan.gradient(layer_.weight);
  lowFilterGradient_ = engine_->element == Element::kBf16 ? plan.scratch : filterGradient_;
  columns_ = engine_->columns(shape_.out.rows(), shape_.out.padded, plan.scratch);
  if (layer_.bias >= 0) {
    bias_ = plan.parameter(layer_.bias);
    biasGradient_ = plan.gradient(layer_.bias);
  }
  if (!normalised()) return {};
  if (layer_.residual.there()) residual_ = plan.of(layer_.residual).data;
  const StatisticsPlace& running = plan.statistics[static_cast<size_t>(layer_.statistics)];
  norm_.scale = plan.parameter(layer_.normScale);
  norm_.shift = plan.parameter(layer_.normShift);
  norm_.runningMean = running.mean;
  norm_.runningVariance = running.variance;
  norm_.epsilon = static_cast<float>(kNormEpsilon);
  norm_.momentum = static_cast<float>(kNormMomentum);
  norm_.relu = relu();
  gradients_.x = convolved_;
  gradients_.y = y_;
  gradients_.scale = plan.gradient(layer_.normScale);
  gradients_.shift = plan.gradient(layer_.normShift);
  gradients_.hasResidual = residual_ != nullptr;
  return {};
}

/// The gradient behind the ReLU is the residual's: in the same memory where it has none yet.
Status ConvolutionOp::planResidual(Plan& plan) {
  Value& residual = plan.of(layer_.residual);
  if (residual.needsGradient && residual.gradient == nullptr) {
    residual.gradient = dy_;
    return {};
  }
  if (residual.needsGradient) residualGradient_ = residual.gradient;
  plan.storage.give(dy_);
  return {};
}

/// With a residual, what enters the convolution gets memory of its own; else it is written over dy.
Status ConvolutionOp::planBackward(Plan& plan) {
  MUSTER_TRY(dy_, plan.takeGradient(layer_.output));
  convolvedGradient_ = dy_;
  if (residual_ != nullptr) {
    MUSTER_TRY(convolvedGradient_,
               plan.storage.take(static_cast<uint64_t>(shape_.out.elements() * plan.bytesPerElement())));
    MUSTER_CHECK_OK(planResidual(plan));
  }
  gradients_.dy = dy_;
  gradients_.dx = convolvedGradient_;
  if (plan.of(layer_.inputs[0]).needsGradient) {
    MUSTER_TRY(dx_, plan.sinkOf(layer_.inputs[0]));
  }
  plan.storage.give(convolvedGradient_);
  return {};
}

Status ConvolutionOp::tune() {
  MUSTER_CHECK_OK(convolver_->tuneForward(x_, w_, convolved_));
  MUSTER_CHECK_OK(convolver_->tuneFilterGradient(x_, convolvedGradient_, lowFilterGradient_));
  if (dx_.data == nullptr) return {};
  return convolver_->tuneInputGradient(w_, convolvedGradient_, dx_.data, dx_.keep);
}

Status ConvolutionOp::forward(Pass pass) {
  MUSTER_CHECK_OK(convolver_->forward(x_, w_, convolved_));
  const Element element = engine_->element;
  if (normalised() && pass == Pass::kTraining)
    MUSTER_CUDA(batchNormTrain(element, columns_, norm_, convolved_, residual_, y_));
  else if (normalised())
    MUSTER_CUDA(batchNormEvaluate(element, columns_, norm_, convolved_, residual_, y_));
  else if (bias_ != nullptr)
    MUSTER_CUDA(addBias(element, columns_, y_, bias_, relu()));
  else if (relu())
    MUSTER_CUDA(reluForward(element, y_, shape_.out.elements(), engine_->stream));
  return {};
}

Status ConvolutionOp::backwardOfNorm() {
  MUSTER_CUDA(batchNormBackward(engine_->element, columns_, norm_, gradients_));
  if (residualGradient_ != nullptr)
    MUSTER_CUDA(addTo(engine_->element, residualGradient_, dy_, shape_.out.elements(), engine_->stream));
  return {};
}

Status ConvolutionOp::backwardOfBias() {
  if (relu()) MUSTER_CUDA(reluBackward(engine_->element, y_, dy_, shape_.out.elements(), engine_->stream));
  if (bias_ != nullptr) MUSTER_CUDA(biasGradient(engine_->element, columns_, dy_, biasGradient_));
  return {};
}

Status ConvolutionOp::backward() {
  MUSTER_CHECK_OK(normalised() ? backwardOfNorm() : backwardOfBias());
  MUSTER_CHECK_OK(convolver_->filterGradient(x_, convolvedGradient_, lowFilterGradient_));
  if (engine_->element == Element::kBf16)
    MUSTER_CUDA(
        castFromBf16(lowFilterGradient_, filterGradient_, shape_.filter.paddedElements(), engine_->stream));
  if (dx_.data == nullptr) return {};
  return convolver_->inputGradient(w_, convolvedGradient_, dx_.data, dx_.keep);
}

}  // namespace

std::unique_ptr<Op> makeConvolution(const Layer& layer) {
  return std::make_unique<ConvolutionOp>(layer);
}

}  // namespace muster::cuda
