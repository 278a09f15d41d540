// SPDX-License-Identifier: Apache-2.0
// Convolution, batch normalisation, residual and ReLU as one operation: cuDNN convolves, our kernels do the
// rest.
#include "kernels/cuda/dnn/ops/convolution_graph.h"
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
  [[nodiscard]] std::vector<std::string> methods() const override;

 private:
  /// One of the three products: its plans, and later the one that is fastest on the arrays it will have.
  Result<std::unique_ptr<ConvolutionGraph>> make(Plan& plan, ConvolutionProduct product, bool added = false);
  Status tune(ConvolutionGraph& graph, const void* x, const void* w, const void* y);
  Status makeMemory(Plan& plan);
  Status planResidual(Plan& plan);
  Status backwardOfNorm();
  Status backwardOfBias();
  [[nodiscard]] bool normalised() const { return layer_.normScale >= 0; }
  [[nodiscard]] bool relu() const { return layer_.convolution.relu; }

  Engine* engine_ = nullptr;
  ConvolutionShape shape_;
  std::unique_ptr<ConvolutionGraph> output_, inputGradient_, filterGradient_;
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
  float* dw_ = nullptr;
  void* lowDw_ = nullptr;  ///< scratch: in 16 bits, as cuDNN has no engine from them to f32
};

Result<std::unique_ptr<ConvolutionGraph>> ConvolutionOp::make(Plan& plan, ConvolutionProduct product,
                                                              bool added) {
  auto made = std::make_unique<ConvolutionGraph>(engine_->target(), shape_, product, added);
  MUSTER_CHECK_OK(made->build());
  plan.wantWorkspace(made->workspaceBytes());
  return made;
}

Status ConvolutionOp::prepare(Plan& plan) {
  engine_ = &plan.engine;
  MUSTER_CHECK_OK(plan.makeValue(layer_.output));
  shape_ = convolutionShape(plan.network, layer_, engine_->channelUnit());
  plan.places[static_cast<size_t>(layer_.weight)].filter = shape_.filter;
  MUSTER_TRY(output_, make(plan, ConvolutionProduct::kOutput));
  MUSTER_TRY(filterGradient_, make(plan, ConvolutionProduct::kFilterGradient));
  plan.wantScratch(engine_->columnBytes(shape_.out.rows(), shape_.out.padded, 2));
  if (engine_->element != Element::kF32)
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
  dw_ = plan.gradient(layer_.weight);
  lowDw_ = engine_->element != Element::kF32 ? plan.scratch : dw_;
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
    MUSTER_TRY(inputGradient_, make(plan, ConvolutionProduct::kInputGradient, dx_.keep));
  }
  plan.storage.give(convolvedGradient_);
  return {};
}

Status ConvolutionOp::tune(ConvolutionGraph& graph, const void* x, const void* w, const void* y) {
  MUSTER_CHECK_OK(graph.bind(x, w, y, engine_->workspace));
  MUSTER_TRY(const size_t fastest, engine_->choose(graph.name(), graph.plans().size(),
                                                   [&](size_t plan) { return graph.run(plan); }));
  graph.choose(fastest);
  return {};
}

Status ConvolutionOp::tune() {
  MUSTER_CHECK_OK(tune(*output_, x_, w_, convolved_));
  MUSTER_CHECK_OK(tune(*filterGradient_, x_, lowDw_, convolvedGradient_));
  return inputGradient_ == nullptr ? Status() : tune(*inputGradient_, dx_.data, w_, convolvedGradient_);
}

Status ConvolutionOp::forward(Pass pass) {
  MUSTER_CHECK_OK(output_->run());
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
  MUSTER_CHECK_OK(filterGradient_->run());
  if (engine_->element != Element::kF32)
    MUSTER_CUDA(castFromLow(engine_->element, lowDw_, dw_, shape_.filter.paddedElements(), engine_->stream));
  return inputGradient_ == nullptr ? Status() : inputGradient_->run();
}

std::vector<std::string> ConvolutionOp::methods() const {
  std::vector<std::string> all = {output_->method(), filterGradient_->method()};
  if (inputGradient_ != nullptr) all.push_back(inputGradient_->method());
  return all;
}

}  // namespace

std::unique_ptr<Op> makeConvolution(const Layer& layer) {
  return std::make_unique<ConvolutionOp>(layer);
}

}  // namespace muster::cuda
