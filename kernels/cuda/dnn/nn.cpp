// SPDX-License-Identifier: Apache-2.0
// Training on GPUs: the entry of cuda_dnn.so.
#include "kernels/interfaces/nn.h"

#include "kernels/cuda/dnn/program.h"
#include "kernels/cuda/modules.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

constexpr int kAmpere = 80;  ///< the first with TF32 and bf16

class CudaNn : public Nn {
 public:
  explicit CudaNn(CudaDevice& device) : device_(device) {}

  [[nodiscard]] std::vector<Dtype> dtypes() const override {
    if (device_.computeCapability() < kAmpere) return {Dtype::kF32, Dtype::kF16};
    return {Dtype::kF32, Dtype::kTf32, Dtype::kF16, Dtype::kBf16};
  }

  Result<std::unique_ptr<Program>> compile(const Network& network, const ProgramOptions& options) override {
    std::vector<std::string> names;
    for (Dtype dtype : dtypes()) {
      if (dtype == options.dtype) return CudaProgram::compile(device_, network, options);
      names.emplace_back(dtypeName(dtype));
    }
    return Error{ErrorCode::kUnsupported,
                 std::string("this GPU computes networks in ") + join(names, ", ") + ", not in " +
                     dtypeName(options.dtype),
                 device_.info().id};
  }

 private:
  CudaDevice& device_;
};

Result<std::unique_ptr<Nn>> openNn(Device& device) {
  // This backend opens no other kind; the module has a copy of the runtime of its own.
  auto& gpu = static_cast<CudaDevice&>(device);
  MUSTER_CUDA(cudaSetDevice(gpu.ordinal()));
  return std::unique_ptr<Nn>(std::make_unique<CudaNn>(gpu));
}

}  // namespace
}  // namespace muster::cuda

extern "C" __attribute__((visibility("default")))
const muster::cuda::DnnEntry muster_cuda_dnn_entry = {muster::buildId(), muster::cuda::openNn};
