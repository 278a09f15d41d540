// SPDX-License-Identifier: Apache-2.0
// Embedding of tokens, with learned positions. Tables are read in f32: they are not products.
#include "kernels/cuda/dnn/ops/op.h"

namespace muster::cuda {
namespace {

class EmbeddingOp : public Op {
 public:
  using Op::Op;

  Status prepare(Plan& plan) override {
    engine_ = &plan.engine;
    const Shape& out = plan.network.shape(layer_.output);
    arrays_ = {out[0], out[1], out[2], layer_.embedding.rows};
    MUSTER_CHECK_OK(plan.makeValue(layer_.output));
    const auto places = static_cast<uint64_t>(arrays_.batch * arrays_.time);
    MUSTER_TRY(void* order, plan.storage.keep(places * sizeof(int32_t)));
    MUSTER_TRY(void* starts, plan.storage.keep(static_cast<uint64_t>(arrays_.rows + 1) * sizeof(int32_t)));
    plan.tokens.push_back(
        {layer_.inputs[0].id, arrays_.rows, static_cast<int32_t*>(order), static_cast<int32_t*>(starts)});
    arrays_.order = plan.tokens.back().order;
    arrays_.starts = plan.tokens.back().starts;
    return {};
  }

  Status bind(Plan& plan) override {
    arrays_.tokens = static_cast<const int32_t*>(plan.of(layer_.inputs[0]).data);
    y_ = plan.of(layer_.output).data;
    arrays_.table = plan.parameter(layer_.weight);
    tableGradient_ = plan.gradient(layer_.weight);
    if (layer_.bias < 0) return {};
    arrays_.positions = plan.parameter(layer_.bias);
    positionsGradient_ = plan.gradient(layer_.bias);
    return {};
  }

  Status planBackward(Plan& plan) override {
    MUSTER_TRY(dy_, plan.takeGradient(layer_.output));
    plan.storage.give(dy_);
    return {};
  }

  Status forward(Pass) override {
    MUSTER_CUDA(embeddingForward(engine_->element, arrays_, y_, engine_->stream));
    return {};
  }
  Status backward() override {
    MUSTER_CUDA(embeddingGradient(engine_->element, arrays_, dy_, tableGradient_, positionsGradient_,
                                  engine_->stream));
    return {};
  }

 private:
  Engine* engine_ = nullptr;
  EmbeddingArrays arrays_;
  float* tableGradient_ = nullptr;
  float* positionsGradient_ = nullptr;
  void* y_ = nullptr;
  void* dy_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> makeEmbedding(const Layer& layer) {
  return std::make_unique<EmbeddingOp>(layer);
}

}  // namespace muster::cuda
