// SPDX-License-Identifier: Apache-2.0
// Pooling of images.
#include "kernels/host/nn/op.h"

namespace muster::host {
namespace {

/// What both kinds share: an image in, and its gradient in memory of its own.
class PoolOp : public Op {
 public:
  using Op::Op;

  Status bind(Plan& plan) override {
    x_ = plan.of(layer_.inputs[0]).data;
    return {};
  }

  Status planBackward(Plan& plan) override {
    MUSTER_TRY(incoming_, takeGradient(plan, layer_.output, 1));
    MUSTER_TRY(dx_, plan.newPart(layer_.inputs[0]));
    giveBack(plan, incoming_);
    return {};
  }

 protected:
  Result<void*> makeOutput(Plan& plan, const memory::desc& desc) {
    if (plan.network.isInput(layer_.inputs[0]))
      return Error{ErrorCode::kUnsupported, "pooling of a network's input; begin with a convolution",
                   layer_.name};
    return plan.makeOutput(layer_.output, desc);
  }

  const void* x_ = nullptr;
  void* y_ = nullptr;
  void* dx_ = nullptr;
};

class MaxPoolOp : public PoolOp {
 public:
  using PoolOp::PoolOp;

  Status prepare(Plan& plan) override {
    const Shape& in = plan.network.shape(layer_.inputs[0]);
    const Shape& out = plan.network.shape(layer_.output);
    const MaxPool& spec = layer_.maxPool;
    pool_ = {plan.blocksOf(out), in[2], in[3], out[2], out[3], spec.kernel, spec.stride, spec.padding};
    if (spec.kernel * spec.kernel > 255)
      return Error{ErrorCode::kUnsupported, "windows of more than 255 pixels are not pooled", layer_.name};
    MUSTER_TRY(y_, makeOutput(plan, plan.imageDesc(out)));
    const auto elements = static_cast<uint64_t>(pool_.out.elements());
    MUSTER_TRY(float* taken, plan.storage.keep((elements + 3) / 4));
    taken_ = reinterpret_cast<uint8_t*>(taken);
    return {};
  }

  void forward(Pass) override { loops_.maxPoolForward(pool_, x_, y_, taken_); }
  void backward() override {
    gather(pool_.out.elements());
    loops_.maxPoolBackward(pool_, incoming_.first, taken_, dx_);
  }

 private:
  PoolData pool_;
  uint8_t* taken_ = nullptr;
};

class AveragePoolOp : public PoolOp {
 public:
  using PoolOp::PoolOp;

  Status prepare(Plan& plan) override {
    const Shape& in = plan.network.shape(layer_.inputs[0]);
    shape_ = plan.blocksOf(in);
    channels_ = in[1];
    MUSTER_TRY(y_, makeOutput(plan, plain(plan.network.shape(layer_.output), plan.type)));
    return {};
  }

  void forward(Pass) override { loops_.averagePoolForward(shape_, channels_, x_, y_); }
  void backward() override {
    gather(shape_.images * channels_);
    loops_.averagePoolBackward(shape_, channels_, incoming_.first, dx_);
  }

 private:
  ImageBlocks shape_;
  int64_t channels_ = 0;
};

}  // namespace

std::unique_ptr<Op> makeMaxPool(const Layer& layer, Plan& plan) {
  return std::make_unique<MaxPoolOp>(layer, plan);
}
std::unique_ptr<Op> makeAveragePool(const Layer& layer, Plan& plan) {
  return std::make_unique<AveragePoolOp>(layer, plan);
}

}  // namespace muster::host
