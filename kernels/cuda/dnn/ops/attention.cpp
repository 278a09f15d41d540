// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention over packed projections, by cuDNN's fused kernels where it has them.
#include "kernels/cuda/dnn/ops/attention.h"

namespace muster::cuda {
namespace {

class AttentionOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    engine_ = &plan.engine;
    const AttentionShape shape = attentionShape(plan.network, layer_);
    MUSTER_CHECK_OK(plan.makeValue(layer_.output));
    auto fused = makeFusedAttention(plan, shape);
    if (!fused.ok() && fused.error().code != ErrorCode::kUnsupported) return std::move(fused).error();
    if (fused.ok()) {
      method_ = std::move(*fused);
      return {};
    }
    refusal_ = fused.error().message;
    MUSTER_TRY(method_, makeBatchedAttention(plan, shape));
    return {};
  }

  Status bind(Plan& plan) override {
    data_.x = plan.of(layer_.inputs[0]).data;
    data_.y = plan.of(layer_.output).data;
    return method_->bind(plan);
  }

  /// Attention writes over the gradient of its input; where another layer has left one, both are added.
  Status planBackward(Plan& plan) override {
    void* dy = nullptr;
    MUSTER_TRY(dy, plan.takeGradient(layer_.output));
    data_.dy = dy;
    MUSTER_TRY(Sink dx, plan.sinkOf(layer_.inputs[0]));
    elements_ = plan.of(layer_.inputs[0]).elements;
    data_.dx = dx.data;
    if (dx.keep) {
      MUSTER_TRY(data_.dx, plan.storage.take(static_cast<uint64_t>(elements_ * plan.bytesPerElement())));
      addTo_ = dx.data;
      plan.storage.give(data_.dx);
    }
    plan.storage.give(dy);
    return {};
  }

  Status tune() override { return method_->tune(data_); }
  Status forward(Pass) override { return method_->forward(data_); }
  Status backward() override {
    MUSTER_CHECK_OK(method_->backward(data_));
    if (addTo_ != nullptr) MUSTER_CUDA(addTo(engine_->element, addTo_, data_.dx, elements_, engine_->stream));
    return {};
  }
  [[nodiscard]] std::vector<std::string> methods() const override {
    return {refusal_.empty() ? method_->name() : method_->name() + " (not fused: " + refusal_ + ")"};
  }

 private:
  Engine* engine_ = nullptr;
  std::unique_ptr<AttentionMethod> method_;
  std::string refusal_;  ///< why it is not cuDNN's fused one
  AttentionData data_;
  void* addTo_ = nullptr;
  int64_t elements_ = 0;
};

}  // namespace

std::unique_ptr<Op> makeAttention(const Layer& layer) {
  return std::make_unique<AttentionOp>(layer);
}

}  // namespace muster::cuda
