// SPDX-License-Identifier: Apache-2.0
// Attention by cuDNN's fused kernels.
#include <limits>

#include "kernels/cuda/dnn/ops/attention.h"

namespace muster::cuda {
namespace {

constexpr size_t kClearsSums = 90600;     ///< the version of cuDNN from which on it clears dq's sums itself
constexpr size_t kTakesInfinity = 91000;  ///< and the one from which on masks may be infinite

class FusedAttention : public AttentionMethod {
 public:
  FusedAttention(Engine& engine, const AttentionShape& shape)
      : engine_(engine),
        shape_(shape),
        scale_(shape.scale),
        lowest_(cudnnGetVersion() < kTakesInfinity ? std::numeric_limits<float>::lowest()
                                                   : -std::numeric_limits<float>::infinity()),
        graphs_(engine.target(), shape) {}

  Status prepare(Plan& plan);
  Status bind(Plan& plan) override;
  Status tune(const AttentionData& data) override;
  Status forward(const AttentionData&) override { return graphs_.forward().run(); }
  Status backward(const AttentionData&) override;
  [[nodiscard]] std::string name() const override {
    return "attention fused by cudnn " + graphs_.forward().plans().front().name() + ", gradient by " +
           graphs_.backward().plans().front().name();
  }

 private:
  [[nodiscard]] uint64_t rowBytes() const {
    const HeadShape& s = shape_.heads;
    return static_cast<uint64_t>(padTo(s.n * s.heads * s.t * 4, Storage::kAlign));
  }

  Engine& engine_;
  AttentionShape shape_;
  float scale_;
  float lowest_;  ///< of what a row does not see
  AttentionGraphs graphs_;
  void* logSums_ = nullptr;  ///< kept for backward
  void* rowSums_ = nullptr;  ///< scratch: sums of dy y
  void* dqSums_ = nullptr;   ///< scratch: dq in f32, where blocks add to it
};

Status FusedAttention::prepare(Plan& plan) {
  MUSTER_CHECK_OK(graphs_.build());
  plan.wantWorkspace(graphs_.forward().workspaceBytes());
  plan.wantWorkspace(graphs_.backward().workspaceBytes());
  plan.wantScratch(rowBytes() + static_cast<uint64_t>(shape_.heads.elements()) * sizeof(float));
  MUSTER_TRY(logSums_, plan.storage.keep(rowBytes()));
  return {};
}

Status FusedAttention::bind(Plan& plan) {
  rowSums_ = plan.scratch;
  dqSums_ = static_cast<std::byte*>(plan.scratch) + rowBytes();
  return {};
}

Status FusedAttention::backward(const AttentionData&) {
  if (!engine_.deterministic && cudnnGetVersion() < kClearsSums)
    MUSTER_CUDA(cudaMemsetAsync(dqSums_, 0, static_cast<size_t>(shape_.heads.elements()) * sizeof(float),
                                engine_.stream));
  return graphs_.backward().run();
}

/// Nothing is chosen by time here; the memory is known now.
Status FusedAttention::tune(const AttentionData& data) {
  const auto part = [&](const void* packed, int64_t which) -> void* {
    auto* bytes = static_cast<std::byte*>(const_cast<void*>(packed));  // cuDNN's interface has no const
    return bytes + which * shape_.heads.heads * shape_.heads.width * bytesOf(engine_.element);
  };
  static float one = 1;
  std::vector<void*> in = {part(data.x, 0), part(data.x, 1), part(data.x, 2), data.y, logSums_, &scale_};
  if (shape_.causal) in.push_back(&lowest_);
  MUSTER_CHECK_OK(graphs_.forward().bind(graphs_.forwardTensors(), in, engine_.workspace));
  std::vector<void*> back = {part(data.x, 0),
                             part(data.x, 1),
                             part(data.x, 2),
                             part(data.y, 0),
                             part(data.dy, 0),
                             logSums_,
                             part(data.dx, 1),
                             part(data.dx, 2),
                             rowSums_,
                             &scale_,
                             &one};
  if (shape_.causal) back.push_back(&lowest_);
  back.push_back(part(data.dx, 0));
  if (!engine_.deterministic) back.push_back(dqSums_);
  return graphs_.backward().bind(graphs_.backwardTensors(), back, engine_.workspace);
}

}  // namespace

Result<std::unique_ptr<AttentionMethod>> makeFusedAttention(Plan& plan, const AttentionShape& shape) {
  if (plan.engine.element != Element::kBf16)
    return Error{ErrorCode::kUnsupported, "attention is fused in bf16 only", ""};
  auto made = std::make_unique<FusedAttention>(plan.engine, shape);
  MUSTER_CHECK_OK(made->prepare(plan));
  return std::unique_ptr<AttentionMethod>(std::move(made));
}

}  // namespace muster::cuda
