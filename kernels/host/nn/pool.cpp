// SPDX-License-Identifier: Apache-2.0
// Pooling of images.
#include "kernels/host/nn/op.h"

namespace muster::host {
namespace {

class MaxPoolOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    const Shape& in = plan.network.shape(layer_.inputs[0]);
    const Shape& out = plan.network.shape(layer_.output);
    if (plan.network.isInput(layer_.inputs[0]))
      return Error{ErrorCode::kUnsupported, "pooling of a network's input; begin with a convolution",
                   layer_.name};
    const MaxPool& spec = layer_.maxPool;
    pool_ = {plan.blocksOf(out), in[2], in[3], out[2], out[3], spec.kernel, spec.stride, spec.padding};
    if (spec.kernel * spec.kernel > 255)
      return Error{ErrorCode::kUnsupported, "windows of more than 255 pixels are not pooled", layer_.name};
    Value& value = plan.of(layer_.output);
    value.desc = plan.imageDesc(out);
    const auto elements = static_cast<uint64_t>(pool_.out.elements());
    MUSTER_TRY(y_, plan.storage.keep(elements));
    value.data = y_;
    MUSTER_TRY(float* taken, plan.storage.keep((elements + 3) / 4));
    taken_ = reinterpret_cast<uint8_t*>(taken);
    return {};
  }

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

  void forward(Pass) override { loops().maxPoolForward(pool_, x_, y_, taken_); }
  void backward() override {
    incoming_.gather(pool_.out.elements());
    loops().maxPoolBackward(pool_, incoming_.first, taken_, dx_);
  }

 private:
  PoolData pool_;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  uint8_t* taken_ = nullptr;
  float* dx_ = nullptr;
  Incoming incoming_;
};

class AveragePoolOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    const Shape& in = plan.network.shape(layer_.inputs[0]);
    if (plan.network.isInput(layer_.inputs[0]))
      return Error{ErrorCode::kUnsupported, "pooling of a network's input; begin with a convolution",
                   layer_.name};
    shape_ = plan.blocksOf(in);
    channels_ = in[1];
    Value& value = plan.of(layer_.output);
    value.desc = plain(plan.network.shape(layer_.output));
    MUSTER_TRY(y_, plan.storage.keep(static_cast<uint64_t>(in[0] * channels_)));
    value.data = y_;
    return {};
  }

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

  void forward(Pass) override { loops().averagePoolForward(shape_, channels_, x_, y_); }
  void backward() override {
    incoming_.gather(shape_.images * channels_);
    loops().averagePoolBackward(shape_, channels_, incoming_.first, dx_);
  }

 private:
  ImageBlocks shape_;
  int64_t channels_ = 0;
  const float* x_ = nullptr;
  float* y_ = nullptr;
  float* dx_ = nullptr;
  Incoming incoming_;
};

}  // namespace

std::unique_ptr<Op> makeMaxPool(const Layer& layer) {
  return std::make_unique<MaxPoolOp>(layer);
}
std::unique_ptr<Op> makeAveragePool(const Layer& layer) {
  return std::make_unique<AveragePoolOp>(layer);
}

}  // namespace muster::host
