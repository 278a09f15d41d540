// SPDX-License-Identifier: Apache-2.0
// The loss: softmax, cross-entropy and the gradient of the logits in one pass.
#include <vector>

#include "kernels/host/nn/op.h"

namespace muster::host {
namespace {

class CrossEntropyOp : public LossOp {
 public:
  using LossOp::LossOp;

  Status prepare(Plan& plan) override {
    const Shape& shape = plan.network.shape(layer_.inputs[0]);
    data_.shape = {elementsOf(shape) / shape.back(), shape.back()};
    losses_.resize(static_cast<size_t>(data_.shape.rows));
    right_.resize(losses_.size());
    data_.losses = losses_.data();
    data_.right = right_.data();
    return {};
  }

  Status bind(Plan& plan) override {
    data_.logits = plan.of(layer_.inputs[0]).data;
    data_.labels = static_cast<const int32_t*>(plan.of(layer_.inputs[1]).data);
    return {};
  }

  /// Memory that gradients share is idle during forward: the logits' gradient is written there already.
  Status planBackward(Plan& plan) override {
    MUSTER_TRY(gradient_, plan.newPart(layer_.inputs[0]));
    return {};
  }

  void forward(Pass pass) override {
    data_.gradient = pass == Pass::kTraining ? gradient_ : nullptr;
    loops_.crossEntropy(data_);
  }
  void backward() override {}

  [[nodiscard]] double loss() const override {
    double sum = 0;
    for (double loss : losses_) sum += loss;
    return sum / static_cast<double>(losses_.size());
  }
  [[nodiscard]] int64_t correct() const override {
    int64_t sum = 0;
    for (int32_t right : right_) sum += right;
    return sum;
  }

 private:
  CrossEntropyData data_;
  void* gradient_ = nullptr;
  std::vector<double> losses_;
  std::vector<int32_t> right_;
};

}  // namespace

std::unique_ptr<LossOp> makeCrossEntropy(const Layer& layer, Plan& plan) {
  return std::make_unique<CrossEntropyOp>(layer, plan);
}

}  // namespace muster::host
