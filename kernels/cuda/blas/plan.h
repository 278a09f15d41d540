// SPDX-License-Identifier: Apache-2.0
// One way to put a product to cuBLASLt: its descriptors, and the algorithms that the library proposes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/blas/types.h"

namespace muster::cuda {

/// Every plan may use so much memory beside its operands: fixed, as algorithms differ by it.
inline constexpr uint64_t kWorkspaceBytes = 32ull << 20;

/// Where a product's matrices are on the device.
struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  void* workspace = nullptr;
  const void* aScale = nullptr;  ///< where the type has scales
  const void* bScale = nullptr;
};

/// C = A B, row-major, is C^T = B^T A^T to a library whose matrices are column-major: our B is its A.
class GemmPlan {
 public:
  struct Mode {
    bool transposedB = false;  ///< B is held as [n, k]
    bool fastAccumulation = false;
  };

  /// `heuristics`: how many algorithms to ask for, the library's favourite first. kUnsupported where it
  /// knows none.
  static Result<std::unique_ptr<GemmPlan>> make(cublasLtHandle_t handle, const GemmSpec& spec,
                                                const GemmType& type, Mode mode, const GemmOperands& at,
                                                int heuristics);
  ~GemmPlan();
  GemmPlan(const GemmPlan&) = delete;
  GemmPlan& operator=(const GemmPlan&) = delete;

  [[nodiscard]] const Mode& mode() const { return mode_; }
  [[nodiscard]] size_t algorithms() const { return found_.size(); }
  /// Queues one product by algorithm `index`. C may lie elsewhere than the plan was made for.
  Status run(size_t index, void* c, cudaStream_t stream) const;
  /// "algo 66 tile 20 stages 35 cluster 3 split-k 1, B transposed".
  [[nodiscard]] std::string describe(size_t index) const;

 private:
  GemmPlan(cublasLtHandle_t handle, const GemmType& type, Mode mode, const GemmOperands& at)
      : handle_(handle), type_(type), mode_(mode), at_(at) {}
  Status describeProduct();
  Status setScales();
  Status describeMatrices(const GemmSpec& spec);
  Status find(const GemmSpec& spec, int heuristics);

  cublasLtHandle_t handle_;
  GemmType type_;
  Mode mode_;
  GemmOperands at_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> found_;
};

}  // namespace muster::cuda
