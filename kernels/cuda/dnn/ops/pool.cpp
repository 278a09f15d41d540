// SPDX-License-Identifier: Apache-2.0
// Pooling of images.
#include "kernels/cuda/dnn/ops/op.h"

namespace muster::cuda {
namespace {

class MaxPoolOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    engine_ = &plan.engine;
    const MaxPool& spec = layer_.maxPool;
    if (spec.kernel * spec.kernel > 255)
      return Error{ErrorCode::kUnsupported, "windows of more than 255 pixels are not pooled", layer_.name};
    MUSTER_CHECK_OK(plan.makeValue(layer_.output));
    pool_ = {plan.of(layer_.inputs[0]).image, plan.of(layer_.output).image, spec.kernel, spec.stride,
             spec.padding};
    MUSTER_TRY(void* taken, plan.storage.keep(static_cast<uint64_t>(pool_.out.elements())));
    taken_ = static_cast<uint8_t*>(taken);
    x_ = plan.of(layer_.inputs[0]).data;
    y_ = plan.of(layer_.output).data;
    return {};
  }
  Status bind(Plan&) override { return {}; }

  Status planBackward(Plan& plan) override {
    MUSTER_TRY(dy_, plan.takeGradient(layer_.output));
    if (plan.of(layer_.inputs[0]).needsGradient) {
      MUSTER_TRY(dx_, plan.sinkOf(layer_.inputs[0]));
    }
    plan.storage.give(dy_);
    return {};
  }

  Status forward(Pass) override {
    MUSTER_CUDA(maxPoolForward(engine_->element, pool_, x_, y_, taken_, engine_->stream));
    return {};
  }
  Status backward() override {
    if (dx_.data != nullptr)
      MUSTER_CUDA(maxPoolBackward(engine_->element, pool_, dy_, taken_, dx_, engine_->stream));
    return {};
  }

 private:
  Engine* engine_ = nullptr;
  PoolShape pool_;
  const void* x_ = nullptr;
  void* y_ = nullptr;
  uint8_t* taken_ = nullptr;
  void* dy_ = nullptr;
  Sink dx_;
};

class AveragePoolOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    engine_ = &plan.engine;
    shape_ = plan.of(layer_.inputs[0]).image;
    MUSTER_CHECK_OK(plan.makeValue(layer_.output));
    x_ = plan.of(layer_.inputs[0]).data;
    y_ = plan.of(layer_.output).data;
    return {};
  }
  Status bind(Plan&) override { return {}; }

  Status planBackward(Plan& plan) override {
    MUSTER_TRY(dy_, plan.takeGradient(layer_.output));
    if (plan.of(layer_.inputs[0]).needsGradient) {
      MUSTER_TRY(dx_, plan.sinkOf(layer_.inputs[0]));
    }
    plan.storage.give(dy_);
    return {};
  }

  Status forward(Pass) override {
    MUSTER_CUDA(averagePoolForward(engine_->element, shape_, x_, y_, engine_->stream));
    return {};
  }
  Status backward() override {
    if (dx_.data != nullptr)
      MUSTER_CUDA(averagePoolBackward(engine_->element, shape_, dy_, dx_, engine_->stream));
    return {};
  }

 private:
  Engine* engine_ = nullptr;
  ImageShape shape_;
  const void* x_ = nullptr;
  void* y_ = nullptr;
  void* dy_ = nullptr;
  Sink dx_;
};

}  // namespace

std::unique_ptr<Op> makeMaxPool(const Layer& layer) {
  return std::make_unique<MaxPoolOp>(layer);
}
std::unique_ptr<Op> makeAveragePool(const Layer& layer) {
  return std::make_unique<AveragePoolOp>(layer);
}

}  // namespace muster::cuda
