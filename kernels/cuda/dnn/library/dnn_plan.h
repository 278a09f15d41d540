// SPDX-License-Identifier: Apache-2.0
// The engines that cuDNN has for a graph of operations, as plans that are ready to run.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/dnn/library/descriptor.h"
#include "kernels/spec/dtype.h"

namespace muster::cuda {

/// What graphs are planned for: a GPU, a type of products, and whether results must be the same every time.
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  /// In place of a handle, from cuDNN 9.8 on: the properties of a GPU that need not be here. Such plans
  /// cannot run.
  const Descriptor* device = nullptr;
  Dtype dtype = Dtype::kF32;
  bool deterministic = true;

  [[nodiscard]] cudnnDataType_t type() const {
    if (dtype == Dtype::kF16) return CUDNN_DATA_HALF;
    return dtype == Dtype::kBf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  }
};

/// One way to compute a graph.
struct DnnPlan {
  Descriptor plan;
  int64_t engine = 0;  ///< cuDNN's number of it
  std::string knobs;   ///< "k2=17 k14=3": each knob that is set, by the number of cudnnBackendKnobType_t
  uint64_t workspaceBytes = 0;

  /// "engine 62 (k2=17 k14=3)"
  [[nodiscard]] std::string name() const;
};

/// Up to `most` plans for an operation graph, in the order of cuDNN's suggestions, which keep what the target
/// promises: sums in f32; f32 without tensor cores, which would make it TF32; in deterministic mode the same
/// bits every time. kUnsupported, with cuDNN's reason, where it has none; a failure of another kind if it was
/// the reason that no plan was made.
Result<std::vector<DnnPlan>> findPlans(const DnnTarget& target, const Descriptor& graph, size_t most);

}  // namespace muster::cuda
