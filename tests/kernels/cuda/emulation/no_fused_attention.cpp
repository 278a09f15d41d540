// SPDX-License-Identifier: Apache-2.0
// In place of kernels/cuda/dnn/ops/fused_attention.cpp: the emulated cuDNN has no graphs of operations, so
// that attention takes the way of batched products and our softmax.
#include "kernels/cuda/dnn/ops/attention.h"

namespace muster::cuda {

Result<std::unique_ptr<AttentionMethod>> makeFusedAttention(Plan&, const AttentionShape&) {
  return Error{ErrorCode::kUnsupported, "the emulated cuDNN has no fused attention", ""};
}

}  // namespace muster::cuda
