// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last dimension.
#include "kernels/cuda/dnn/ops/op.h"

namespace muster::cuda {
namespace {

class LayerNormOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    engine_ = &plan.engine;
    MUSTER_CHECK_OK(wantRows(plan, layer_));
    const Shape& shape = plan.network.shape(layer_.output);
    arrays_.width = shape.back();
    arrays_.rows = elementsOf(shape) / arrays_.width;
    arrays_.epsilon = static_cast<float>(kNormEpsilon);
    MUSTER_CHECK_OK(plan.makeValue(layer_.output));
    const auto bytes = static_cast<uint64_t>(arrays_.rows) * sizeof(float);
    MUSTER_TRY(void* mean, plan.storage.keep(bytes));
    MUSTER_TRY(void* inverse, plan.storage.keep(bytes));
    arrays_.mean = static_cast<float*>(mean);
    arrays_.inverse = static_cast<float*>(inverse);
    plan.wantScratch(engine_->columnBytes(arrays_.rows, arrays_.width, 2));
    return {};
  }

  Status bind(Plan& plan) override {
    arrays_.x = plan.of(layer_.inputs[0]).data;
    arrays_.scale = plan.parameter(layer_.weight);
    arrays_.shift = plan.parameter(layer_.bias);
    y_ = plan.of(layer_.output).data;
    scaleGradient_ = plan.gradient(layer_.weight);
    shiftGradient_ = plan.gradient(layer_.bias);
    columns_ = engine_->columns(arrays_.rows, arrays_.width, plan.scratch);
    return {};
  }

  Status planBackward(Plan& plan) override {
    MUSTER_TRY(dy_, plan.takeGradient(layer_.output));
    MUSTER_TRY(dx_, plan.sinkOf(layer_.inputs[0]));
    plan.storage.give(dy_);
    return {};
  }

  Status forward(Pass) override {
    MUSTER_CUDA(layerNormForward(engine_->element, arrays_, y_, engine_->stream));
    return {};
  }
  Status backward() override {
    MUSTER_CUDA(layerNormInputGradient(engine_->element, arrays_, dy_, dx_, engine_->stream));
    MUSTER_CUDA(layerNormParameterGradients(engine_->element, columns_, arrays_, dy_, scaleGradient_,
                                            shiftGradient_));
    return {};
  }

 private:
  Engine* engine_ = nullptr;
  LayerNormArrays arrays_;
  Columns columns_;
  void* y_ = nullptr;
  void* dy_ = nullptr;
  Sink dx_;
  float* scaleGradient_ = nullptr;
  float* shiftGradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> makeLayerNorm(const Layer& layer) {
  return std::make_unique<LayerNormOp>(layer);
}

}  // namespace muster::cuda
