// SPDX-License-Identifier: Apache-2.0
// What errors of the CUDA runtime mean for somebody who looks after GPUs, and what to do about them.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "runner/core/result.h"

namespace muster::cuda {

/// The error for a GPU that cannot be opened. Versions as cudaDriverGetVersion() counts: 13000 for CUDA 13.0;
/// a driver of 0: none was found.
Error openProblem(cudaError_t code, const std::string& device, const std::string& pciAddress,
                  int driverVersion, int runtimeVersion);

/// Whether the toolkit of this build came before a GPU of `capability` (100 for 10.0): its libraries have no
/// kernels for it. `toolkit` as CUDART_VERSION counts.
Status checkGeneration(int capability, int toolkit, const std::string& device);

/// The error for work that failed on an open GPU; `doing`: "waiting for queued work".
Error workProblem(cudaError_t code, const std::string& device, const std::string& doing);

}  // namespace muster::cuda
