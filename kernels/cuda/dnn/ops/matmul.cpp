// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt. Its matrices are column-major: a row-major product is that of the transposed
// matrices in exchanged order, so "A" below is our B and the other way round.
#include "kernels/cuda/dnn/ops/matmul.h"

#include <fmt/format.h>

namespace muster::cuda {
namespace {

constexpr int kCandidates = 16;
constexpr uintptr_t kAlignment = 256;  ///< of all memory of a program

std::string textOf(const MatmulSpec& s) {
  return fmt::format("matmul {}{}{} of {}x{}x{} batch {} beta {}{}{}", s.transposeA ? 'T' : 'N',
                     s.transposeB ? 'T' : 'N', s.floatOutput ? " to f32" : "", s.m, s.n, s.k, s.batch, s.beta,
                     s.bias ? " bias" : "", s.biasGradient ? " bias gradient" : "");
}

}  // namespace

Result<std::unique_ptr<Matmul>> Matmul::make(Engine& engine, const MatmulSpec& spec) {
  std::unique_ptr<Matmul> made(new Matmul(engine, spec));
  MUSTER_CHECK_OK(made->describe().context(textOf(spec)));
  MUSTER_CHECK_OK(made->findAlgorithms().context(textOf(spec)));
  return made;
}

Matmul::~Matmul() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, d_})
    if (layout != nullptr) (void)cublasLtMatrixLayoutDestroy(layout);
  if (description_ != nullptr) (void)cublasLtMatmulDescDestroy(description_);
}

Status Matmul::makeLayout(cublasLtMatrixLayout_t& layout, cudaDataType_t type, int64_t rows,
                          int64_t columns) {
  MUSTER_CUBLAS(cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                           static_cast<uint64_t>(columns), rows));
  if (spec_.batch == 1) return {};
  const auto batch = static_cast<int32_t>(spec_.batch);
  const int64_t stride = rows * columns;
  MUSTER_CUBLAS(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
  MUSTER_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                 sizeof(stride)));
  return {};
}

Status Matmul::describe() {
  const auto compute = engine_.dtype == Dtype::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  MUSTER_CUBLAS(cublasLtMatmulDescCreate(&description_, compute, CUDA_R_32F));
  const auto set = [this](cublasLtMatmulDescAttributes_t what, auto value) {
    return cublasLtMatmulDescSetAttribute(description_, what, &value, sizeof(value));
  };
  MUSTER_CUBLAS(set(CUBLASLT_MATMUL_DESC_TRANSA, spec_.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N));
  MUSTER_CUBLAS(set(CUBLASLT_MATMUL_DESC_TRANSB, spec_.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N));
  if (spec_.bias) {
    MUSTER_CUBLAS(set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS));
    MUSTER_CUBLAS(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, engine_.blasType()));
  }
  if (spec_.biasGradient) {
    MUSTER_CUBLAS(set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB));
    MUSTER_CUBLAS(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, outputType()));
  }
  if (spec_.bias || spec_.biasGradient) {
    // The heuristics ask for its alignment alone; bind() sets the real one.
    MUSTER_CUBLAS(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void*>(kAlignment)));
  }
  const cudaDataType_t in = engine_.blasType();
  MUSTER_CHECK_OK(spec_.transposeB ? makeLayout(a_, in, spec_.k, spec_.n)
                                   : makeLayout(a_, in, spec_.n, spec_.k));
  MUSTER_CHECK_OK(spec_.transposeA ? makeLayout(b_, in, spec_.m, spec_.k)
                                   : makeLayout(b_, in, spec_.k, spec_.m));
  return makeLayout(d_, outputType(), spec_.n, spec_.m);
}

/// All memory of a program is aligned to 256 bytes, as the heuristics take for granted.
Status Matmul::findAlgorithms() {
  cublasLtMatmulPreference_t preference = nullptr;
  MUSTER_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, void (*)(cublasLtMatmulPreference_t)> owner(
      preference, [](cublasLtMatmulPreference_t p) { (void)cublasLtMatmulPreferenceDestroy(p); });
  const auto bytes = static_cast<size_t>(kMatmulWorkspace);
  MUSTER_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     &bytes, sizeof(bytes)));
  algorithms_.resize(kCandidates);
  int found = 0;
  MUSTER_CUBLAS(cublasLtMatmulAlgoGetHeuristic(engine_.blas, description_, a_, b_, d_, d_, preference,
                                               kCandidates, algorithms_.data(), &found));
  algorithms_.resize(static_cast<size_t>(found));
  std::erase_if(algorithms_, [](const auto& algorithm) { return algorithm.state != CUBLAS_STATUS_SUCCESS; });
  if (!algorithms_.empty()) return {};
  return Error{ErrorCode::kUnsupported, "cuBLASLt has no algorithm for it", ""};
}

Status Matmul::bind(const MatmulData& data) {
  data_ = data;
  if (data_.c == nullptr) data_.c = data_.d;
  if (data_.vector != nullptr)
    MUSTER_CUBLAS(cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                 &data_.vector, sizeof(data_.vector)));
  return {};
}

Status Matmul::tune() {
  MUSTER_TRY(chosen_,
             engine_.choose(textOf(spec_), algorithms_.size(), [this](size_t i) { return runAs(i); }));
  return {};
}

Status Matmul::runAs(size_t algorithm) {
  const float one = 1;
  MUSTER_CUBLAS(cublasLtMatmul(engine_.blas, description_, &one, data_.b, a_, data_.a, b_, &spec_.beta,
                               data_.c, d_, data_.d, d_, &algorithms_[algorithm].algo, engine_.workspace,
                               engine_.workspaceBytes, engine_.stream));
  return {};
}

}  // namespace muster::cuda
