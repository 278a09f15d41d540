// SPDX-License-Identifier: Apache-2.0
// Attention by cuDNN's fused kernels (Dao et al. 2022, "FlashAttention"): the graph of its operations, from
// which cuDNN tells what is meant. Forward keeps one number a row, the logarithm of its sum; probabilities
// exist only inside the kernel, and are computed again for backward.
#include <limits>

#include "kernels/cuda/dnn/library/dnn_graph.h"
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
        forward_(engine),
        backward_(engine) {}

  Status prepare(Plan& plan);
  Status bind(Plan& plan) override;
  Status tune(const AttentionData& data) override;
  Status forward(const AttentionData&) override { return forward_.run(); }
  Status backward(const AttentionData&) override;
  [[nodiscard]] std::string name() const override { return "attention fused by cudnn"; }

 private:
  // Tensors, as [n, heads, t, width]; a transposed one has its last two dimensions exchanged.
  [[nodiscard]] GraphTensor heads(int64_t parts, bool transposed) const;
  [[nodiscard]] GraphTensor scores(cudnnDataType_t type, bool transposed = false) const;
  [[nodiscard]] GraphTensor rows(Holding holding) const;
  static GraphTensor number() { return {{1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Holding::kValue}; }
  [[nodiscard]] uint64_t rowBytes() const {
    const HeadShape& s = shape_.heads;
    return static_cast<uint64_t>(padTo(s.n * s.heads * s.t * 4, Storage::kAlign));
  }

  static int multiplied(DnnGraph& graph, const GraphTensor& result, int x, int factor);
  int masked(DnnGraph& graph, int x, int lowest) const;
  void describeForward();
  void describeBackward();
  void describeQueryGradient(int dScores, int k);

  Engine& engine_;
  AttentionShape shape_;
  float scale_;
  float lowest_;  ///< of what a row does not see
  DnnGraph forward_, backward_;
  std::vector<int> forwardTensors_, backwardTensors_;
  void* logSums_ = nullptr;  ///< kept for backward
  void* rowSums_ = nullptr;  ///< scratch: sums of dy y
  void* dqSums_ = nullptr;   ///< scratch: dq in f32, where blocks add to it
};

GraphTensor FusedAttention::heads(int64_t parts, bool transposed) const {
  const HeadShape& s = shape_.heads;
  const int64_t step = parts * s.heads * s.width;  // from one token to the next
  GraphTensor t{
      {s.n, s.heads, s.t, s.width}, {s.t * step, s.width, step, 1}, engine_.dnnType(), Holding::kMemory};
  if (transposed) {
    std::swap(t.dims[2], t.dims[3]);
    std::swap(t.strides[2], t.strides[3]);
  }
  return t;
}
GraphTensor FusedAttention::scores(cudnnDataType_t type, bool transposed) const {
  const HeadShape& s = shape_.heads;
  const int64_t square = s.t * s.t;
  return {{s.n, s.heads, s.t, s.t},
          {s.heads * square, square, transposed ? 1 : s.t, transposed ? s.t : 1},
          type,
          Holding::kVirtual};
}
GraphTensor FusedAttention::rows(Holding holding) const {
  const HeadShape& s = shape_.heads;
  return {{s.n, s.heads, s.t, 1}, {s.heads * s.t, s.t, 1, 1}, CUDNN_DATA_FLOAT, holding};
}

int FusedAttention::multiplied(DnnGraph& graph, const GraphTensor& result, int x, int factor) {
  const int to = graph.tensor(result);
  graph.pointwise(CUDNN_POINTWISE_MUL, x, factor, -1, to);
  return to;
}

/// x where the row's number is not below the column's, else `lowest`.
int FusedAttention::masked(DnnGraph& graph, int x, int lowest) const {
  if (!shape_.causal) return x;
  const int row = graph.tensor(scores(CUDNN_DATA_INT32));
  const int column = graph.tensor(scores(CUDNN_DATA_INT32));
  const int seen = graph.tensor(scores(CUDNN_DATA_BOOLEAN));
  const int to = graph.tensor(scores(CUDNN_DATA_FLOAT));
  graph.index(x, 2, row);
  graph.index(x, 3, column);
  graph.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, -1, seen, CUDNN_DATA_BOOLEAN);
  graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, lowest, seen, to);
  return to;
}

/// y = softmax(scale q k^T) v, and the logarithm of each row's sum.
void FusedAttention::describeForward() {
  DnnGraph& g = forward_;
  const GraphTensor square = scores(CUDNN_DATA_FLOAT);
  const GraphTensor row = rows(Holding::kVirtual);
  const int q = g.tensor(heads(3, false));
  const int k = g.tensor(heads(3, true));
  const int v = g.tensor(heads(3, false));
  const int y = g.tensor(heads(1, false));
  const int logSums = g.tensor(rows(Holding::kMemory));
  const int scale = g.tensor(number());
  const int lowest = shape_.causal ? g.tensor(number()) : -1;
  const int product = g.tensor(square);
  g.matmul(q, k, product);
  const int x = masked(g, multiplied(g, square, product, scale), lowest);
  const int top = g.tensor(row);
  const int distance = g.tensor(square);
  const int exponential = g.tensor(square);
  const int sum = g.tensor(row);
  const int logarithm = g.tensor(row);
  GraphTensor low = square;
  low.type = engine_.dnnType();
  const int probabilities = g.tensor(low);
  g.reduce(CUDNN_REDUCE_TENSOR_MAX, x, top);
  g.pointwise(CUDNN_POINTWISE_SUB, x, top, -1, distance);
  g.pointwise(CUDNN_POINTWISE_EXP, distance, -1, -1, exponential);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, exponential, sum);
  g.pointwise(CUDNN_POINTWISE_LOG, sum, -1, -1, logarithm);
  g.pointwise(CUDNN_POINTWISE_ADD, top, logarithm, -1, logSums);
  g.pointwise(CUDNN_POINTWISE_DIV, exponential, sum, -1, probabilities);
  g.matmul(probabilities, v, y);
  forwardTensors_ = {q, k, v, y, logSums, scale};
  if (lowest >= 0) forwardTensors_.push_back(lowest);
}

/// dv = p^T dy; ds = scale p (dy v^T - sum of dy y); dk = ds^T q; dq = ds k.
void FusedAttention::describeBackward() {
  DnnGraph& g = backward_;
  const GraphTensor square = scores(CUDNN_DATA_FLOAT);
  const int q = g.tensor(heads(3, false));
  const int k = g.tensor(heads(3, true));
  const int v = g.tensor(heads(3, true));
  const int y = g.tensor(heads(1, false));
  const int dy = g.tensor(heads(1, false));
  const int logSums = g.tensor(rows(Holding::kMemory));
  const int dk = g.tensor(heads(3, false));
  const int dv = g.tensor(heads(3, false));
  const int rowSums = g.tensor(rows(Holding::kMemory));
  const int scale = g.tensor(number());
  const int one = g.tensor(number());
  const int lowest = shape_.causal ? g.tensor(number()) : -1;
  backwardTensors_ = {q, k, v, y, dy, logSums, dk, dv, rowSums, scale, one};
  if (lowest >= 0) backwardTensors_.push_back(lowest);

  GraphTensor like = heads(1, false);
  like.type = CUDNN_DATA_FLOAT;
  like.holding = Holding::kVirtual;
  const int dyY = multiplied(g, like, dy, y);
  const int sums = g.tensor(rows(Holding::kVirtual));
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, dyY, sums);
  g.pointwise(CUDNN_POINTWISE_MUL, sums, one, -1, rowSums);

  const int product = g.tensor(square);
  g.matmul(q, k, product);
  const int scaled = multiplied(g, square, product, scale);
  const int distance = g.tensor(square);
  g.pointwise(CUDNN_POINTWISE_SUB, scaled, logSums, -1, distance);
  const int p = g.tensor(square);
  g.pointwise(CUDNN_POINTWISE_EXP, masked(g, distance, lowest), -1, -1, p);
  const int pTransposed = g.tensor(scores(engine_.dnnType(), true));
  g.reshape(p, pTransposed);
  g.matmul(pTransposed, dy, dv);

  const int dp = g.tensor(square);
  const int centred = g.tensor(square);
  g.matmul(dy, v, dp);
  g.pointwise(CUDNN_POINTWISE_SUB, dp, rowSums, -1, centred);
  const int dScores = multiplied(g, square, multiplied(g, square, centred, p), scale);
  const int dScoresTransposed = g.tensor(scores(engine_.dnnType(), true));
  g.reshape(dScores, dScoresTransposed);
  g.matmul(dScoresTransposed, q, dk);
  describeQueryGradient(dScores, k);
}

/// Blocks of keys add to dq one after the other: fastest in f32 memory in any order; in deterministic mode
/// cuDNN writes it at once.
void FusedAttention::describeQueryGradient(int dScores, int k) {
  DnnGraph& g = backward_;
  const HeadShape& s = shape_.heads;
  const int dq = g.tensor(heads(3, false));
  GraphTensor keys = heads(3, false);
  keys.holding = Holding::kVirtual;
  const int kBack = g.tensor(keys);
  g.reshape(k, kBack);
  backwardTensors_.push_back(dq);
  if (engine_.deterministic) {
    g.matmul(dScores, kBack, dq);
    return;
  }
  const int dqSums = g.tensor({{s.n, s.heads, s.t, s.width},
                               {s.heads * s.t * s.width, s.t * s.width, s.width, 1},
                               CUDNN_DATA_FLOAT,
                               Holding::kMemory});
  g.matmul(dScores, kBack, dqSums);
  g.pointwise(CUDNN_POINTWISE_IDENTITY, dqSums, -1, -1, dq);
  backwardTensors_.push_back(dqSums);
}

Status FusedAttention::prepare(Plan& plan) {
  describeForward();
  describeBackward();
  MUSTER_CHECK_OK(forward_.build());
  MUSTER_CHECK_OK(backward_.build());
  plan.wantWorkspace(std::max(forward_.workspaceBytes(), backward_.workspaceBytes()));
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
  return backward_.run();
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
  MUSTER_CHECK_OK(forward_.bind(forwardTensors_, in, engine_.workspace));
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
  return backward_.bind(backwardTensors_, back, engine_.workspace);
}

}  // namespace

Result<std::unique_ptr<AttentionMethod>> makeFusedAttention(Plan& plan, const AttentionShape& shape) {
  if (plan.engine.element != Element::kBf16)
    return Error{ErrorCode::kUnsupported, "cuDNN fuses attention of 16-bit floats only", ""};
  auto made = std::make_unique<FusedAttention>(plan.engine, shape);
  MUSTER_CHECK_OK(made->prepare(plan));
  return std::unique_ptr<AttentionMethod>(std::move(made));
}

}  // namespace muster::cuda
