// SPDX-License-Identifier: Apache-2.0
// Descriptors and algorithms of one product. In here A and B are the library's, that is our B and A.
#include "kernels/cuda/blas/plan.h"

#include <fmt/format.h>

#include "kernels/cuda/blas/error.h"

namespace muster::cuda {
namespace {

template <typename T>
cublasStatus_t set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, T value) {
  return cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value);
}

/// One and zero in the type that alpha and beta have.
struct Factors {
  double f64;
  float f32;
  int32_t i32;
  [[nodiscard]] const void* as(cudaDataType_t type) const {
    if (type == CUDA_R_64F) return &f64;
    if (type == CUDA_R_32I) return &i32;
    return &f32;
  }
};
constexpr Factors kOne = {1, 1, 1};
constexpr Factors kZero = {0, 0, 0};

/// What an algorithm is made of; -1 where the library does not say.
int configOf(const cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  int32_t value = 0;
  size_t written = 0;
  // Some attributes have 16 bits: the rest stays zero.
  const auto status = cublasLtMatmulAlgoConfigGetAttribute(&algo, attribute, &value, sizeof value, &written);
  if (status == CUBLAS_STATUS_SUCCESS) return value;
  uint16_t narrow = 0;
  return cublasLtMatmulAlgoConfigGetAttribute(&algo, attribute, &narrow, sizeof narrow, &written) ==
                 CUBLAS_STATUS_SUCCESS
             ? narrow
             : -1;
}

struct PreferenceDeleter {
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const {
    (void)cublasLtMatmulPreferenceDestroy(preference);
  }
};
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, PreferenceDeleter>;

Result<Preference> makePreference() {
  cublasLtMatmulPreference_t made = nullptr;
  MUSTER_CUBLAS(cublasLtMatmulPreferenceCreate(&made));
  Preference preference(made);
  MUSTER_CUBLAS(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     &kWorkspaceBytes, sizeof kWorkspaceBytes));
  return preference;
}

}  // namespace

GemmPlan::~GemmPlan() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, c_})
    if (layout != nullptr) (void)cublasLtMatrixLayoutDestroy(layout);
  if (product_ != nullptr) (void)cublasLtMatmulDescDestroy(product_);
}

Result<std::unique_ptr<GemmPlan>> GemmPlan::make(cublasLtHandle_t handle, const GemmSpec& spec,
                                                 const GemmType& type, Mode mode, const GemmOperands& at,
                                                 int heuristics) {
  std::unique_ptr<GemmPlan> plan(new GemmPlan(handle, type, mode, at));
  MUSTER_CHECK_OK(plan->describeProduct());
  MUSTER_CHECK_OK(plan->setScales());
  MUSTER_CHECK_OK(plan->describeMatrices(spec));
  MUSTER_CHECK_OK(plan->find(spec, heuristics));
  return plan;
}

Status GemmPlan::describeProduct() {
  MUSTER_CUBLAS(cublasLtMatmulDescCreate(&product_, type_.computeType, type_.scaleType));
  if (mode_.transposedB) MUSTER_CUBLAS(set<int32_t>(product_, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  if (mode_.fastAccumulation) MUSTER_CUBLAS(set<int8_t>(product_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1));
  return {};
}

Status GemmPlan::setScales() {
  if (type_.scaleBlock < 0) return {};
  MUSTER_CUBLAS(set(product_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, at_.bScale));
  MUSTER_CUBLAS(set(product_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, at_.aScale));
#if CUBLAS_VERSION >= 120800
  if (type_.scaleBlock > 0) {
    constexpr int32_t kBlocks = CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    MUSTER_CUBLAS(set(product_, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, kBlocks));
    MUSTER_CUBLAS(set(product_, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, kBlocks));
  }
#endif
  return {};
}

Status GemmPlan::describeMatrices(const GemmSpec& spec) {
  const auto m = static_cast<uint64_t>(spec.m);
  const auto n = static_cast<uint64_t>(spec.n);
  const auto k = static_cast<uint64_t>(spec.k);
  if (mode_.transposedB)
    MUSTER_CUBLAS(cublasLtMatrixLayoutCreate(&a_, type_.bType, k, n, spec.k));
  else
    MUSTER_CUBLAS(cublasLtMatrixLayoutCreate(&a_, type_.bType, n, k, spec.n));
  MUSTER_CUBLAS(cublasLtMatrixLayoutCreate(&b_, type_.aType, k, m, spec.k));
  MUSTER_CUBLAS(cublasLtMatrixLayoutCreate(&c_, type_.outputType, n, m, spec.n));
  return {};
}

Status GemmPlan::find(const GemmSpec& spec, int heuristics) {
  MUSTER_TRY(Preference preference, makePreference());
  found_.resize(static_cast<size_t>(heuristics));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, product_, a_, b_, c_, c_, preference.get(), heuristics, found_.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED)
    return cublasError(status, "cublasLtMatmulAlgoGetHeuristic", __FILE_NAME__, __LINE__);
  found_.resize(static_cast<size_t>(std::max(count, 0)));
  std::erase_if(found_, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  if (found_.empty())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cuBLASLt knows no algorithm for {} x {} x {} in {} on this GPU", spec.m, spec.n,
                             spec.k, dtypeName(spec.dtype)),
                 ""};
  return {};
}

Status GemmPlan::run(size_t index, void* c, cudaStream_t stream) const {
  MUSTER_CUBLAS(cublasLtMatmul(handle_, product_, kOne.as(type_.scaleType), at_.b, a_, at_.a, b_,
                               kZero.as(type_.scaleType), c, c_, c, c_, &found_[index].algo, at_.workspace,
                               kWorkspaceBytes, stream));
  return {};
}

std::string GemmPlan::describe(size_t index) const {
  const cublasLtMatmulAlgo_t& algo = found_[index].algo;
  return fmt::format(
      "algo {} tile {} stages {} cluster {} split-k {}{}{}", configOf(algo, CUBLASLT_ALGO_CONFIG_ID),
      configOf(algo, CUBLASLT_ALGO_CONFIG_TILE_ID), configOf(algo, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      configOf(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID), configOf(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      mode_.transposedB ? ", B transposed" : "", mode_.fastAccumulation ? ", fast accumulation" : "");
}

}  // namespace muster::cuda
