// SPDX-License-Identifier: Apache-2.0
// Opens NVIDIA's libraries and the modules that need them.
#include "kernels/cuda/modules.h"

#include "kernels/cuda/toolkit_libraries.h"

namespace muster::cuda {

Modules::Modules(std::string folder)
    : folder_(std::move(folder)),
      blas_("cuda_blas.so", "muster_cuda_blas_entry"),
      dnn_("cuda_dnn.so", "muster_cuda_dnn_entry"),
      nccl_("cuda_nccl.so", "muster_cuda_nccl_entry") {}

template <typename Entry>
Result<const Entry*> Modules::open(Module<Entry>& module, const char* holds,
                                   std::initializer_list<const char*> libraries) {
  const std::string step = std::string("GPUs cannot do ") + holds;
  for (const char* library : libraries) MUSTER_CHECK_OK(openToolkitLibrary(library).context(step));
  return module.open(folder_).context(step);
}

Result<const BlasEntry*> Modules::blas() {
  return open(blas_, "matrix operations", {kCublasLt});
}
Result<const DnnEntry*> Modules::dnn() {
  return open(dnn_, "training", {kCublasLt, kNvrtc, kCudnn});
}
Result<const NcclEntry*> Modules::nccl() {
  return open(nccl_, "communicators", {kNccl});
}

}  // namespace muster::cuda
