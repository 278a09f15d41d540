// SPDX-License-Identifier: Apache-2.0
// The operations of attention, forward and backward.
#include "kernels/cuda/dnn/ops/attention_graphs.h"

#include <cmath>
#include <utility>

namespace muster::cuda {
namespace {

constexpr cudnnDataType_t kType = CUDNN_DATA_BFLOAT16;  ///< of all that is in memory but sums

}  // namespace

AttentionShape attentionShape(const Network& network, const Layer& layer) {
  const Shape& out = network.shape(layer.output);
  const int64_t heads = layer.attention.heads;
  AttentionShape shape;
  shape.heads = {out[0], out[1], heads, out[2] / heads};
  shape.causal = layer.attention.causal;
  shape.scale = 1.0f / std::sqrt(static_cast<float>(shape.heads.width));
  return shape;
}

AttentionGraphs::AttentionGraphs(const DnnTarget& target, const AttentionShape& shape)
    : target_(target), shape_(shape), forward_(target), backward_(target) {
  describeForward();
  describeBackward();
}

Status AttentionGraphs::build() {
  MUSTER_CHECK_OK(forward_.build().context("attention"));
  return backward_.build().context("attention's gradient");
}

GraphTensor AttentionGraphs::heads(int64_t parts, bool transposed) const {
  const HeadShape& s = shape_.heads;
  const int64_t step = parts * s.heads * s.width;  // from one token to the next
  GraphTensor t{{s.n, s.heads, s.t, s.width}, {s.t * step, s.width, step, 1}, kType, Holding::kMemory};
  if (transposed) {
    std::swap(t.dims[2], t.dims[3]);
    std::swap(t.strides[2], t.strides[3]);
  }
  return t;
}
GraphTensor AttentionGraphs::scores(cudnnDataType_t type, bool transposed) const {
  const HeadShape& s = shape_.heads;
  const int64_t square = s.t * s.t;
  return {{s.n, s.heads, s.t, s.t},
          {s.heads * square, square, transposed ? 1 : s.t, transposed ? s.t : 1},
          type,
          Holding::kVirtual};
}
GraphTensor AttentionGraphs::rows(Holding holding) const {
  const HeadShape& s = shape_.heads;
  return {{s.n, s.heads, s.t, 1}, {s.heads * s.t, s.t, 1, 1}, CUDNN_DATA_FLOAT, holding};
}

int AttentionGraphs::multiplied(DnnGraph& graph, const GraphTensor& result, int x, int factor) {
  const int to = graph.tensor(result);
  graph.pointwise(CUDNN_POINTWISE_MUL, x, factor, -1, to);
  return to;
}

/// x where the row's number is not below the column's, else `lowest`.
int AttentionGraphs::masked(DnnGraph& graph, int x, int lowest) const {
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
void AttentionGraphs::describeForward() {
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
  low.type = kType;
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
void AttentionGraphs::describeBackward() {
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
  const int pTransposed = g.tensor(scores(kType, true));
  g.reshape(p, pTransposed);
  g.matmul(pTransposed, dy, dv);

  const int dp = g.tensor(square);
  const int centred = g.tensor(square);
  g.matmul(dy, v, dp);
  g.pointwise(CUDNN_POINTWISE_SUB, dp, rowSums, -1, centred);
  const int dScores = multiplied(g, square, multiplied(g, square, centred, p), scale);
  const int dScoresTransposed = g.tensor(scores(kType, true));
  g.reshape(dScores, dScoresTransposed);
  g.matmul(dScoresTransposed, q, dk);
  describeQueryGradient(dScores, k);
}

/// Blocks of keys add to dq one after the other: fastest in f32 memory in any order; in deterministic mode
/// cuDNN writes it at once.
void AttentionGraphs::describeQueryGradient(int dScores, int k) {
  DnnGraph& g = backward_;
  const HeadShape& s = shape_.heads;
  const int dq = g.tensor(heads(3, false));
  GraphTensor keys = heads(3, false);
  keys.holding = Holding::kVirtual;
  const int kBack = g.tensor(keys);
  g.reshape(k, kBack);
  backwardTensors_.push_back(dq);
  if (target_.deterministic) {
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

}  // namespace muster::cuda
