// SPDX-License-Identifier: Apache-2.0
// A GPU's operations: which types it multiplies. The entry of cuda_blas.so.
#include "kernels/interfaces/ops.h"

#include <map>
#include <tuple>

#include "kernels/checks/gemm_reference.h"
#include "kernels/cuda/blas/error.h"
#include "kernels/cuda/blas/gemm.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/modules.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

const std::vector<std::string>& algorithms() {
  static const std::vector<std::string> names = {"default", "best"};
  return names;
}

class CudaOps : public Ops {
 public:
  CudaOps(CudaDevice& device, cublasLtHandle_t handle) : device_(device), handle_(handle) {}
  ~CudaOps() override { (void)cublasLtDestroy(handle_); }
  CudaOps(const CudaOps&) = delete;
  CudaOps& operator=(const CudaOps&) = delete;

  [[nodiscard]] std::vector<Dtype> gemmDtypes() const override {
    std::vector<Dtype> dtypes;
    for (const GemmType& type : gemmTypes())
      if (device_.computeCapability() >= type.leastCapability) dtypes.push_back(type.dtype);
    return dtypes;
  }

  [[nodiscard]] std::vector<std::string> gemmAlgorithms(Dtype dtype) const override {
    return gemmType(dtype, device_.computeCapability()).ok() ? algorithms() : std::vector<std::string>{};
  }

  Result<std::unique_ptr<Gemm>> gemm(const GemmSpec& spec) override {
    MUSTER_CHECK_OK(checkGemmShape(spec));
    bool known = false;
    for (const std::string& name : algorithms()) known = known || name == spec.algorithm;
    if (!known)
      return Error{ErrorCode::kUsage,
                   "unknown algorithm \"" + printable(spec.algorithm, 64) + "\", expected one of " +
                       join(algorithms(), ", ") + didYouMean(spec.algorithm, algorithms()),
                   ""};
    MUSTER_TRY(GemmType type, gemmType(spec.dtype, device_.computeCapability()));
    MUSTER_CHECK_OK(checkMultiples(spec, type));
    return makeGemm(device_, handle_, spec, type, chosen_[{spec.dtype, spec.m, spec.n, spec.k}]);
  }

 private:
  CudaDevice& device_;
  cublasLtHandle_t handle_;
  std::map<std::tuple<Dtype, int64_t, int64_t, int64_t>, std::string> chosen_;  ///< of "best"
};

Result<std::unique_ptr<Ops>> openOps(Device& device) {
  auto& gpu = static_cast<CudaDevice&>(device);
  // This module has a copy of the runtime of its own.
  MUSTER_CUDA(cudaSetDevice(gpu.ordinal()));
  cublasLtHandle_t handle = nullptr;
  MUSTER_CUBLAS(cublasLtCreate(&handle));
  return std::unique_ptr<Ops>(std::make_unique<CudaOps>(gpu, handle));
}

}  // namespace
}  // namespace muster::cuda

extern "C" __attribute__((visibility("default")))
const muster::cuda::BlasEntry muster_cuda_blas_entry = {muster::buildId(), muster::cuda::openOps};
