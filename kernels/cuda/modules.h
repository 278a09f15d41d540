// SPDX-License-Identifier: Apache-2.0
// The borders between backend_cuda.so and the modules beside it, each of which holds what needs one of
// NVIDIA's libraries: opened on first use, so that a library that is missing stops only what needs it.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "kernels/interfaces/communicator.h"
#include "kernels/interfaces/nn.h"
#include "kernels/interfaces/ops.h"
#include "kernels/loading/module.h"

namespace muster::cuda {

/// Exported by cuda_blas.so (cuBLASLt) as `muster_cuda_blas_entry`; the build id must be equal.
struct BlasEntry {
  const char* buildId;
  Result<std::unique_ptr<Ops>> (*open)(Device& device);
};

/// Exported by cuda_dnn.so (cuDNN, cuBLASLt) as `muster_cuda_dnn_entry`.
struct DnnEntry {
  const char* buildId;
  Result<std::unique_ptr<Nn>> (*open)(Device& device);
};

/// Exported by cuda_nccl.so (NCCL) as `muster_cuda_nccl_entry`.
struct NcclEntry {
  const char* buildId;
  Result<std::unique_ptr<Communicator>> (*form)(Device& device, const CommunicatorSpec& spec,
                                                GroupStore& store);
};

/// The modules of a folder, each opened on its first use together with the libraries that it needs. An error
/// names the library that is missing, and concerns that module alone.
class Modules {
 public:
  explicit Modules(std::string folder);
  Result<const BlasEntry*> blas();
  Result<const DnnEntry*> dnn();
  Result<const NcclEntry*> nccl();

 private:
  /// `libraries` by SONAME, in the order in which they need each other.
  template <typename Entry>
  Result<const Entry*> open(Module<Entry>& module, const char* holds,
                            std::initializer_list<const char*> libraries);

  std::string folder_;
  Module<BlasEntry> blas_;
  Module<DnnEntry> dnn_;
  Module<NcclEntry> nccl_;
};

}  // namespace muster::cuda
