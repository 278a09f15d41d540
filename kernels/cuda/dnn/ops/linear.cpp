// SPDX-License-Identifier: Apache-2.0
// Linear layers: products by cuBLASLt that take bias, residual and earlier gradients along. GELU is a pass of
// its own, since cuBLASLt's epilogue only has the tanh form.
#include "kernels/cuda/dnn/ops/matmul.h"
#include "kernels/cuda/dnn/ops/op.h"

namespace muster::cuda {
namespace {

class LinearOp : public Op {
 public:
  using Op::Op;
  Status prepare(Plan& plan) override;
  Status bind(Plan& plan) override;
  Status planBackward(Plan& plan) override;
  Status tune() override;
  Status forward(Pass pass) override;
  Status backward() override;

 private:
  Status makeWeightGradient();
  Status activationBackward();
  [[nodiscard]] int64_t out() const { return layer_.linear.features; }
  [[nodiscard]] bool ownBiasGradient() const { return layer_.bias >= 0 && !fusedBiasGradient_; }

  Engine* engine_ = nullptr;
  int64_t rows_ = 0, in_ = 0;
  std::unique_ptr<Matmul> forward_, weightGradient_, inputGradient_;
  bool fusedBiasGradient_ = false;
  void* product_ = nullptr;  ///< before GELU
  void* y_ = nullptr;
  void* dy_ = nullptr;
  void* residualGradient_ = nullptr;  ///< to be added to; else dy was handed on
  float* biasGradientTo_ = nullptr;
  Columns columns_;
};

/// With the bias' gradient where cuBLASLt can sum it on the way.
Status LinearOp::makeWeightGradient() {
  MatmulSpec spec{.m = out(), .n = in_, .k = rows_, .transposeA = true, .floatOutput = true};
  if (layer_.bias >= 0) {
    spec.biasGradient = true;
    auto fused = Matmul::make(*engine_, spec);
    if (!fused.ok() && fused.error().code != ErrorCode::kUnsupported) return std::move(fused).error();
    fusedBiasGradient_ = fused.ok();
    if (fusedBiasGradient_) weightGradient_ = std::move(*fused);
    spec.biasGradient = false;
  }
  if (weightGradient_ == nullptr) {
    MUSTER_TRY(weightGradient_, Matmul::make(*engine_, spec));
  }
  return {};
}

Status LinearOp::prepare(Plan& plan) {
  engine_ = &plan.engine;
  MUSTER_CHECK_OK(wantRows(plan, layer_));
  in_ = plan.network.shape(layer_.inputs[0]).back();
  rows_ = elementsOf(plan.network.shape(layer_.output)) / out();
  MUSTER_TRY(forward_, Matmul::make(*engine_, {.m = rows_,
                                               .n = out(),
                                               .k = in_,
                                               .transposeB = true,
                                               .bias = layer_.bias >= 0,
                                               .beta = layer_.residual.there() ? 1.0f : 0.0f}));
  MUSTER_CHECK_OK(makeWeightGradient());
  plan.wantWorkspace(kMatmulWorkspace);
  plan.wantScratch(engine_->columnBytes(rows_, out(), 1));
  MUSTER_CHECK_OK(plan.makeValue(layer_.output));
  y_ = plan.of(layer_.output).data;
  product_ = y_;
  if (layer_.linear.activation == Activation::kGelu) {
    MUSTER_TRY(product_, plan.storage.keep(static_cast<uint64_t>(rows_ * out() * plan.bytesPerElement())));
  }
  return {};
}

Status LinearOp::bind(Plan& plan) {
  const void* residual = layer_.residual.there() ? plan.of(layer_.residual).data : nullptr;
  columns_ = engine_->columns(rows_, out(), plan.scratch);
  if (layer_.bias >= 0) biasGradientTo_ = plan.gradient(layer_.bias);
  return forward_->bind({plan.of(layer_.inputs[0]).data, plan.weight(layer_.weight), residual, product_,
                         layer_.bias >= 0 ? plan.weight(layer_.bias) : nullptr});
}

/// A residual takes the gradient over as it is: where it has none yet, in the same memory.
Status LinearOp::planBackward(Plan& plan) {
  MUSTER_TRY(dy_, plan.takeGradient(layer_.output));
  const void* x = plan.of(layer_.inputs[0]).data;
  MUSTER_CHECK_OK(
      weightGradient_->bind({dy_, x, nullptr, plan.gradient(layer_.weight),
                             fusedBiasGradient_ ? static_cast<void*>(biasGradientTo_) : nullptr}));
  if (plan.of(layer_.inputs[0]).needsGradient) {
    MUSTER_TRY(Sink dx, plan.sinkOf(layer_.inputs[0]));
    MUSTER_TRY(inputGradient_,
               Matmul::make(*engine_, {.m = rows_, .n = in_, .k = out(), .beta = dx.keep ? 1.0f : 0.0f}));
    MUSTER_CHECK_OK(inputGradient_->bind({dy_, plan.weight(layer_.weight), nullptr, dx.data, nullptr}));
  }
  if (layer_.residual.there() && plan.of(layer_.residual).needsGradient) {
    Value& residual = plan.of(layer_.residual);
    if (residual.gradient == nullptr) {
      residual.gradient = dy_;
      return {};
    }
    residualGradient_ = residual.gradient;
  }
  plan.storage.give(dy_);
  return {};
}

Status LinearOp::tune() {
  MUSTER_CHECK_OK(forward_->tune());
  MUSTER_CHECK_OK(weightGradient_->tune());
  return inputGradient_ == nullptr ? Status() : inputGradient_->tune();
}

Status LinearOp::forward(Pass) {
  MUSTER_CHECK_OK(forward_->run());
  if (layer_.linear.activation == Activation::kGelu)
    MUSTER_CUDA(geluForward(engine_->element, product_, y_, rows_ * out(), engine_->stream));
  if (layer_.linear.activation == Activation::kRelu)
    MUSTER_CUDA(reluForward(engine_->element, y_, rows_ * out(), engine_->stream));
  return {};
}

Status LinearOp::activationBackward() {
  if (layer_.linear.activation == Activation::kGelu)
    MUSTER_CUDA(geluBackward(engine_->element, product_, dy_, rows_ * out(), engine_->stream));
  if (layer_.linear.activation == Activation::kRelu)
    MUSTER_CUDA(reluBackward(engine_->element, y_, dy_, rows_ * out(), engine_->stream));
  return {};
}

Status LinearOp::backward() {
  MUSTER_CHECK_OK(activationBackward());
  if (ownBiasGradient()) MUSTER_CUDA(biasGradient(engine_->element, columns_, dy_, biasGradientTo_));
  MUSTER_CHECK_OK(weightGradient_->run());
  if (inputGradient_ != nullptr) MUSTER_CHECK_OK(inputGradient_->run());
  if (residualGradient_ != nullptr)
    MUSTER_CUDA(addTo(engine_->element, residualGradient_, dy_, rows_ * out(), engine_->stream));
  return {};
}

}  // namespace

std::unique_ptr<Op> makeLinear(const Layer& layer) {
  return std::make_unique<LinearOp>(layer);
}

}  // namespace muster::cuda
