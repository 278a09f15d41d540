// SPDX-License-Identifier: Apache-2.0
// Matrix products of row-major matrices by cuBLASLt, with what it can do on the way: add a bias, add to what
// is there, sum a bias' gradient.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cuda/dnn/library/engine.h"

namespace muster::cuda {

constexpr uint64_t kMatmulWorkspace = uint64_t{32} << 20;  ///< what NVIDIA recommends for Hopper

/// D[m,n] = op(A)[m,k] op(B)[k,n] + beta C[m,n] (+ bias[n]). A transposed matrix is stored [k,m] or [n,k].
/// Batches follow each other in memory.
struct MatmulSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transposeA = false, transposeB = false;
  int64_t batch = 1;
  bool floatOutput = false;   ///< D and C are f32 although A and B are bf16
  bool bias = false;          ///< of the inputs' type
  bool biasGradient = false;  ///< also sums op(A) over k: m values of D's type
  float beta = 0;
};

/// The matrices of one product; `vector` is the bias, or where its gradient goes.
struct MatmulData {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  ///< only where beta is not 0; may be d
  void* d = nullptr;
  void* vector = nullptr;
};

class Matmul {
 public:
  /// kUnsupported where cuBLASLt has no algorithm for it.
  static Result<std::unique_ptr<Matmul>> make(Engine& engine, const MatmulSpec& spec);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  /// Sets the matrices. tune() then chooses the algorithm by running it on them.
  Status bind(const MatmulData& data);
  Status tune();
  Status run() { return runAs(chosen_); }

 private:
  Matmul(Engine& engine, const MatmulSpec& spec) : engine_(engine), spec_(spec) {}
  Status describe();
  Status findAlgorithms();
  Status makeLayout(cublasLtMatrixLayout_t& layout, cudaDataType_t type, int64_t rows, int64_t columns);
  Status runAs(size_t algorithm);
  [[nodiscard]] cudaDataType_t outputType() const {
    return spec_.floatOutput ? CUDA_R_32F : engine_.blasType();
  }

  Engine& engine_;
  MatmulSpec spec_;
  MatmulData data_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms_;
  size_t chosen_ = 0;
};

}  // namespace muster::cuda
