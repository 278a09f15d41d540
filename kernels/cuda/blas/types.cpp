// SPDX-License-Identifier: Apache-2.0
// The element types of products, as data.
#include "kernels/cuda/blas/types.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::cuda {
namespace {

constexpr bool kTransposed = true;
constexpr bool kFast = true;
constexpr int kNoScales = -1;
constexpr int kOneScale = 0;

std::vector<GemmType> makeTypes() {
  constexpr auto kF32 = CUDA_R_32F;
  constexpr auto kBf16 = CUDA_R_16BF;
  constexpr auto kE4m3 = CUDA_R_8F_E4M3;
  std::vector<GemmType> types = {
      {Dtype::kF64, Dtype::kF64, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, 75, 1,
       !kTransposed, !kFast, kNoScales},
      {Dtype::kF32, Dtype::kF32, kF32, kF32, kF32, CUBLAS_COMPUTE_32F, kF32, 75, 1, !kTransposed, !kFast,
       kNoScales},
      {Dtype::kTf32, Dtype::kTf32, kF32, kF32, kF32, CUBLAS_COMPUTE_32F_FAST_TF32, kF32, 80, 1, !kTransposed,
       !kFast, kNoScales},
      {Dtype::kF16, Dtype::kF16, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, kF32, 75, 1,
       !kTransposed, !kFast, kNoScales},
      {Dtype::kBf16, Dtype::kBf16, kBf16, kBf16, kBf16, CUBLAS_COMPUTE_32F, kF32, 80, 1, !kTransposed, !kFast,
       kNoScales},
      {Dtype::kFp8E4m3, Dtype::kFp8E4m3, kE4m3, kE4m3, kBf16, CUBLAS_COMPUTE_32F, kF32, 89, 16, kTransposed,
       kFast, kOneScale},
      {Dtype::kFp8E5m2, Dtype::kFp8E4m3, CUDA_R_8F_E5M2, kE4m3, kBf16, CUBLAS_COMPUTE_32F, kF32, 89, 16,
       kTransposed, kFast, kOneScale},
      {Dtype::kI8, Dtype::kI8, CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, 75, 4,
       kTransposed, !kFast, kNoScales},
  };
#if CUBLAS_VERSION >= 120800
  types.push_back({Dtype::kFp4, Dtype::kFp4, CUDA_R_4F_E2M1, CUDA_R_4F_E2M1, kBf16, CUBLAS_COMPUTE_32F, kF32,
                   100, 32, kTransposed, !kFast, 16});
#endif
  return types;
}

uint64_t roundUp(int64_t value, int64_t multiple) {
  return static_cast<uint64_t>((value + multiple - 1) / multiple * multiple);
}

}  // namespace

const std::vector<GemmType>& gemmTypes() {
  static const std::vector<GemmType> types = makeTypes();
  return types;
}

Result<GemmType> gemmType(Dtype dtype, int capability) {
  const auto& types = gemmTypes();
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const GemmType& type) { return type.dtype == dtype; });
  if (found == types.end())
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("cuBLASLt {} of this build multiplies no {}; it takes a build with CUDA 12.8 or newer",
                    CUBLAS_VERSION, dtypeName(dtype)),
        ""};
  if (capability < found->leastCapability)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("a GPU of compute capability {}.{} multiplies no {}, which begins with {}.{}",
                             capability / 10, capability % 10, dtypeName(dtype), found->leastCapability / 10,
                             found->leastCapability % 10),
                 ""};
  return *found;
}

Status checkMultiples(const GemmSpec& spec, const GemmType& type) {
  for (int64_t dimension : {spec.m, spec.n, spec.k})
    if (dimension % type.multiple != 0)
      return Error{ErrorCode::kUsage,
                   fmt::format("m, n and k must be multiples of {} in {}, not {} x {} x {}", type.multiple,
                               dtypeName(type.dtype), spec.m, spec.n, spec.k),
                   ""};
  return {};
}

uint64_t blockScaleBytes(const GemmType& type, int64_t rows, int64_t k) {
  return roundUp(rows, 128) * roundUp((k + type.scaleBlock - 1) / type.scaleBlock, 4);
}

}  // namespace muster::cuda
