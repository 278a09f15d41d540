// SPDX-License-Identifier: Apache-2.0
// Ways to compute attention: cuDNN's fused one, and batched products around our softmax.
#pragma once

#include <memory>

#include "kernels/cuda/dnn/ops/attention_graphs.h"
#include "kernels/cuda/dnn/ops/op.h"

namespace muster::cuda {

/// Where one layer's values lie: x and dx [n, t, 3, heads, width], y and dy [n, t, heads, width].
struct AttentionData {
  const void* x = nullptr;
  void* y = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
};

/// One way, made for one layer.
class AttentionMethod {
 public:
  virtual ~AttentionMethod() = default;
  virtual Status bind(Plan& plan) = 0;  ///< scratch is there
  virtual Status tune(const AttentionData& data) = 0;
  virtual Status forward(const AttentionData& data) = 0;
  virtual Status backward(const AttentionData& data) = 0;
  [[nodiscard]] virtual std::string name() const = 0;
};

Result<std::unique_ptr<AttentionMethod>> makeBatchedAttention(Plan& plan, const AttentionShape& shape);
/// kUnsupported where cuDNN has no fused attention for the shape, type or GPU.
Result<std::unique_ptr<AttentionMethod>> makeFusedAttention(Plan& plan, const AttentionShape& shape);

}  // namespace muster::cuda
