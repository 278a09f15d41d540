// SPDX-License-Identifier: Apache-2.0
// The loss: softmax, cross-entropy and the gradient of the logits in one pass.
#include "kernels/cuda/dnn/ops/op.h"

namespace muster::cuda {
namespace {

class CrossEntropyOp : public LossOp {
 public:
  using LossOp::LossOp;

  Status prepare(Plan& plan) override {
    engine_ = &plan.engine;
    MUSTER_CHECK_OK(wantRows(plan, layer_));
    const Shape& shape = plan.network.shape(layer_.inputs[0]);
    data_.classes = shape.back();
    data_.rows = elementsOf(shape) / data_.classes;
    const auto rows = static_cast<uint64_t>(data_.rows);
    MUSTER_TRY(void* losses, plan.storage.keep(rows * sizeof(float)));
    MUSTER_TRY(void* right, plan.storage.keep(rows * sizeof(int32_t)));
    MUSTER_TRY(void* sums, plan.storage.keep(2 * sizeof(double)));
    data_.losses = static_cast<float*>(losses);
    data_.right = static_cast<int32_t*>(right);
    data_.sums = static_cast<double*>(sums);
    return {};
  }

  Status bind(Plan& plan) override {
    data_.logits = plan.of(layer_.inputs[0]).data;
    data_.labels = static_cast<const int32_t*>(plan.of(layer_.inputs[1]).data);
    return {};
  }

  /// Memory that gradients share is idle during forward: the logits' gradient is written there already.
  Status planBackward(Plan& plan) override {
    MUSTER_TRY(Sink sink, plan.sinkOf(layer_.inputs[0]));
    gradient_ = sink.data;
    return {};
  }

  Status forward(Pass pass) override {
    data_.gradient = pass == Pass::kTraining ? gradient_ : nullptr;
    MUSTER_CUDA(classify(engine_->element, data_, engine_->stream));
    return {};
  }
  Status backward() override { return {}; }

  [[nodiscard]] const double* sums() const override { return data_.sums; }
  [[nodiscard]] int64_t rows() const override { return data_.rows; }

 private:
  Engine* engine_ = nullptr;
  Classifier data_;
  void* gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<LossOp> makeCrossEntropy(const Layer& layer) {
  return std::make_unique<CrossEntropyOp>(layer);
}

}  // namespace muster::cuda
