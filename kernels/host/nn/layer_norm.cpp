// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last dimension.
#include "kernels/host/nn/op.h"

namespace muster::host {
namespace {

class LayerNormOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    const Shape& shape = plan.network.shape(layer_.output);
    data_.shape = {elementsOf(shape) / shape.back(), shape.back()};
    data_.epsilon = static_cast<float>(kNormEpsilon);
    const auto rows = static_cast<uint64_t>(data_.shape.rows);
    MUSTER_TRY(data_.y, plan.makeRows(layer_.output));
    MUSTER_TRY(data_.mean, plan.storage.keep(rows));
    MUSTER_TRY(data_.inverse, plan.storage.keep(rows));
    plan.wantScratch(2 * static_cast<uint64_t>(plan.engine.threads) *
                     static_cast<uint64_t>(data_.shape.width));
    return {};
  }

  Status bind(Plan& plan) override {
    data_.x = plan.of(layer_.inputs[0]).data;
    data_.scale = plan.parameter(layer_.weight);
    data_.shift = plan.parameter(layer_.bias);
    gradient_.scale = plan.gradient(layer_.weight);
    gradient_.shift = plan.gradient(layer_.bias);
    gradient_.scratch = plan.scratch;
    return {};
  }

  /// Adds to the gradient that the residual path left, or replaces the output's.
  Status planBackward(Plan& plan) override {
    MUSTER_TRY(incoming_, takeGradient(plan, layer_.output, 1));
    gradient_.dy = incoming_.first;
    Value& x = plan.of(layer_.inputs[0]);
    Incoming used = incoming_;
    gradient_.addToDx = !x.parts.empty();
    if (gradient_.addToDx) {
      gradient_.dx = x.parts.front();
    } else {
      gradient_.dx = incoming_.first;
      used.first = nullptr;
      x.parts.push_back(incoming_.first);
    }
    giveBack(plan, used);
    return {};
  }

  void forward(Pass) override { loops_.layerNormForward(data_); }
  void backward() override {
    gather(data_.shape.elements());
    loops_.layerNormBackward(data_, gradient_);
  }

 private:
  LayerNormData data_;
  LayerNormGradient gradient_;
};

}  // namespace

std::unique_ptr<Op> makeLayerNorm(const Layer& layer, Plan& plan) {
  return std::make_unique<LayerNormOp>(layer, plan);
}

}  // namespace muster::host
