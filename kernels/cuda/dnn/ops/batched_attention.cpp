// SPDX-License-Identifier: Apache-2.0
// Attention as products in batches of heads around our softmax: for types, sizes and GPUs that cuDNN's fused
// kernels leave out. Scores are f32 and shared scratch; probabilities are kept for backward.
#include "kernels/cuda/dnn/ops/attention.h"
#include "kernels/cuda/dnn/ops/matmul.h"

namespace muster::cuda {
namespace {

class BatchedAttention : public AttentionMethod {
 public:
  BatchedAttention(Engine& engine, const AttentionShape& shape) : engine_(engine), shape_(shape) {}

  Status prepare(Plan& plan);
  Status bind(Plan& plan) override;
  Status tune(const AttentionData&) override;
  Status forward(const AttentionData& data) override;
  Status backward(const AttentionData& data) override;
  [[nodiscard]] std::string name() const override { return "attention by batched products"; }

 private:
  [[nodiscard]] Scores rows() const {
    return {shape_.heads.n * shape_.heads.heads * shape_.heads.t, shape_.heads.t, shape_.causal,
            shape_.scale};
  }
  [[nodiscard]] uint64_t partBytes() const {
    return static_cast<uint64_t>(padTo(shape_.heads.elements() * bytesOf(engine_.element), Storage::kAlign));
  }
  [[nodiscard]] HeadParts parts(int64_t count) const {
    return {count, static_cast<int64_t>(partBytes()) / bytesOf(engine_.element)};
  }
  [[nodiscard]] int64_t scoreCount() const { return rows().rows * shape_.heads.t; }
  [[nodiscard]] static std::byte* part(void* parts, uint64_t bytes, int which) {
    return static_cast<std::byte*>(parts) + bytes * static_cast<uint64_t>(which);
  }
  Status makeProducts();

  Engine& engine_;
  AttentionShape shape_;
  void* probabilities_ = nullptr;
  void* apart_ = nullptr;          ///< q, k and v of [n, heads, t, width]; kept for backward
  void* outApart_ = nullptr;       ///< scratch from here on: y, then dy
  void* gradientApart_ = nullptr;  ///< dq, dk and dv
  float* scores_ = nullptr;
  void* scoreGradient_ = nullptr;
  std::unique_ptr<Matmul> scoresOf_, outputOf_, dv_, dp_, dq_, dk_;
};

Status BatchedAttention::makeProducts() {
  const int64_t t = shape_.heads.t;
  const int64_t w = shape_.heads.width;
  const int64_t batch = shape_.heads.n * shape_.heads.heads;
  const auto make = [&](std::unique_ptr<Matmul>& to, const MatmulSpec& spec) -> Status {
    MUSTER_TRY(to, Matmul::make(engine_, spec));
    return {};
  };
  MUSTER_CHECK_OK(
      make(scoresOf_, {.m = t, .n = t, .k = w, .transposeB = true, .batch = batch, .floatOutput = true}));
  MUSTER_CHECK_OK(make(outputOf_, {.m = t, .n = w, .k = t, .batch = batch}));
  MUSTER_CHECK_OK(make(dv_, {.m = t, .n = w, .k = t, .transposeA = true, .batch = batch}));
  MUSTER_CHECK_OK(
      make(dp_, {.m = t, .n = t, .k = w, .transposeB = true, .batch = batch, .floatOutput = true}));
  MUSTER_CHECK_OK(make(dq_, {.m = t, .n = w, .k = t, .batch = batch}));
  return make(dk_, {.m = t, .n = w, .k = t, .transposeA = true, .batch = batch});
}

Status BatchedAttention::prepare(Plan& plan) {
  MUSTER_CHECK_OK(makeProducts());
  const auto scores = static_cast<uint64_t>(scoreCount());
  MUSTER_TRY(probabilities_, plan.storage.keep(scores * static_cast<uint64_t>(bytesOf(engine_.element))));
  MUSTER_TRY(apart_, plan.storage.keep(3 * partBytes()));
  plan.wantWorkspace(kMatmulWorkspace);
  plan.wantScratch(4 * partBytes() + scores * (sizeof(float) + 4) + 2 * Storage::kAlign);
  return {};
}

Status BatchedAttention::bind(Plan& plan) {
  outApart_ = plan.scratch;
  gradientApart_ = part(plan.scratch, partBytes(), 1);
  scores_ = reinterpret_cast<float*>(part(plan.scratch, partBytes(), 4));
  const auto bytes = static_cast<uint64_t>(padTo(scoreCount() * 4, Storage::kAlign));
  scoreGradient_ = reinterpret_cast<std::byte*>(scores_) + bytes;
  void* q = apart_;
  void* k = part(apart_, partBytes(), 1);
  void* v = part(apart_, partBytes(), 2);
  MUSTER_CHECK_OK(scoresOf_->bind({q, k, nullptr, scores_, nullptr}));
  MUSTER_CHECK_OK(outputOf_->bind({probabilities_, v, nullptr, outApart_, nullptr}));
  MUSTER_CHECK_OK(
      dv_->bind({probabilities_, outApart_, nullptr, part(gradientApart_, partBytes(), 2), nullptr}));
  MUSTER_CHECK_OK(dp_->bind({outApart_, v, nullptr, scores_, nullptr}));
  MUSTER_CHECK_OK(dq_->bind({scoreGradient_, k, nullptr, gradientApart_, nullptr}));
  return dk_->bind({scoreGradient_, q, nullptr, part(gradientApart_, partBytes(), 1), nullptr});
}

Status BatchedAttention::tune(const AttentionData&) {
  for (Matmul* product : {scoresOf_.get(), outputOf_.get(), dv_.get(), dp_.get(), dq_.get(), dk_.get()})
    MUSTER_CHECK_OK(product->tune());
  return {};
}

Status BatchedAttention::forward(const AttentionData& data) {
  const Element element = engine_.element;
  MUSTER_CUDA(unpackHeads(element, data.x, apart_, shape_.heads, parts(3), engine_.stream));
  MUSTER_CHECK_OK(scoresOf_->run());
  MUSTER_CUDA(attentionSoftmax(element, rows(), scores_, probabilities_, engine_.stream));
  MUSTER_CHECK_OK(outputOf_->run());
  MUSTER_CUDA(packHeads(element, outApart_, data.y, shape_.heads, parts(1), engine_.stream));
  return {};
}

Status BatchedAttention::backward(const AttentionData& data) {
  const Element element = engine_.element;
  MUSTER_CUDA(unpackHeads(element, data.dy, outApart_, shape_.heads, parts(1), engine_.stream));
  MUSTER_CHECK_OK(dv_->run());
  MUSTER_CHECK_OK(dp_->run());
  MUSTER_CUDA(
      attentionSoftmaxBackward(element, rows(), probabilities_, scores_, scoreGradient_, engine_.stream));
  MUSTER_CHECK_OK(dq_->run());
  MUSTER_CHECK_OK(dk_->run());
  MUSTER_CUDA(packHeads(element, gradientApart_, data.dx, shape_.heads, parts(3), engine_.stream));
  return {};
}

}  // namespace

Result<std::unique_ptr<AttentionMethod>> makeBatchedAttention(Plan& plan, const AttentionShape& shape) {
  auto made = std::make_unique<BatchedAttention>(plan.engine, shape);
  MUSTER_CHECK_OK(made->prepare(plan));
  return std::unique_ptr<AttentionMethod>(std::move(made));
}

}  // namespace muster::cuda
