// SPDX-License-Identifier: Apache-2.0
// Takes the place of device.cpp in a build without the CUDA toolkit: GPUs are seen, but nothing runs on them.
#include "kernels/cuda/open.h"

namespace muster::cuda {

Result<std::unique_ptr<Device>> openDevice(const DeviceInfo& info) {
  return Error{
      ErrorCode::kUnsupported,
      "this Muster was built without the CUDA toolkit, so nothing can run on GPUs; install a build that has "
      "it, or build with -Dcuda=enabled where nvcc is",
      info.id};
}

/// No device was opened that it could be asked for.
Result<std::unique_ptr<Copies>> openCopies(Device& device) {
  return Error{ErrorCode::kInternal, "this build opens no GPU", device.info().id};
}

}  // namespace muster::cuda
