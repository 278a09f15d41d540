// SPDX-License-Identifier: Apache-2.0
// Attention as graphs of cuDNN's operations, and the shape of an attention layer.
#pragma once

#include <vector>

#include "kernels/cuda/dnn/device/layout.h"
#include "kernels/cuda/dnn/library/dnn_graph.h"
#include "kernels/spec/network.h"

namespace muster::cuda {

struct AttentionShape {
  HeadShape heads;
  bool causal = true;
  float scale = 1;
};
AttentionShape attentionShape(const Network& network, const Layer& layer);

/// FlashAttention (Dao et al. 2022) in bf16 as the operations from which cuDNN tells what is meant. Forward
/// keeps one number a row, the logarithm of its sum; probabilities exist only inside the kernel, and are
/// computed again for backward.
class AttentionGraphs {
 public:
  AttentionGraphs(const DnnTarget& target, const AttentionShape& shape);
  Status build();

  DnnGraph& forward() { return forward_; }
  DnnGraph& backward() { return backward_; }
  [[nodiscard]] const DnnGraph& forward() const { return forward_; }
  [[nodiscard]] const DnnGraph& backward() const { return backward_; }
  /// What bind() of each graph is given: q, k, v, y, logarithms, scale, and for causal masks what a row does
  /// not see.
  [[nodiscard]] const std::vector<int>& forwardTensors() const { return forwardTensors_; }
  /// q, k, v, y, dy, logarithms, dk, dv, row sums, scale, one, the mask's value, dq, and dq's sums where it
  /// has some.
  [[nodiscard]] const std::vector<int>& backwardTensors() const { return backwardTensors_; }

 private:
  // Tensors, as [n, heads, t, width]; a transposed one has its last two dimensions exchanged.
  [[nodiscard]] GraphTensor heads(int64_t parts, bool transposed) const;
  [[nodiscard]] GraphTensor scores(cudnnDataType_t type, bool transposed = false) const;
  [[nodiscard]] GraphTensor rows(Holding holding) const;
  static GraphTensor number() { return {{1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Holding::kValue}; }

  static int multiplied(DnnGraph& graph, const GraphTensor& result, int x, int factor);
  int masked(DnnGraph& graph, int x, int lowest) const;
  void describeForward();
  void describeBackward();
  void describeQueryGradient(int dScores, int k);

  DnnTarget target_;
  AttentionShape shape_;
  DnnGraph forward_, backward_;
  std::vector<int> forwardTensors_, backwardTensors_;
};

}  // namespace muster::cuda
