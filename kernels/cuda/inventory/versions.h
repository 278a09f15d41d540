// SPDX-License-Identifier: Apache-2.0
// Versions of driver, CUDA, cuDNN and NCCL, and whether they fit each other and this build.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/inventory/nvml/nvml.h"
#include "runner/core/json.h"

namespace muster::cuda {

/// The CUDA version that this build's kernels need, as CUDA writes it (13000 for 13.0); 0: it has none.
int builtForCuda();

/// "13.0" for 13000.
std::string cudaVersionText(int version);

/// A library's version as its functions tell it; 0 where it is missing or does not tell.
struct LibraryVersion {
  unsigned long long version = 0;
  int cuda = 0;  ///< the CUDA version that it was made for (13000)
};
/// What this build was compiled with, or what is found at run time.
struct LibraryVersions {
  int cuda = 0;  ///< of the toolkit
  LibraryVersion cudnn, nccl;
};
LibraryVersions builtWith();

/// What does not fit, each with what to do: a library for another major version of CUDA, or one older than
/// this build was compiled with. What is missing is no misfit: it is an error where it is needed.
std::vector<std::string> misfits(const LibraryVersions& built, const LibraryVersions& found);

/// An Error in one line when the driver is too old for kernels of CUDA `built`, with what to do. The driver's
/// CUDA version counts, which an installed cuda-compat raises: it has to be of the same major version at
/// least. kNotFound when the driver's libcuda.so.1 is missing, by which NVML reads that version.
Status checkDriver(const Nvml& nvml, int built);

/// {"nvidia_driver", "nvml", "cuda_driver", "cuda_build", "cudnn", "nccl", "fit"}. `fit` is "yes" or says
/// what of driver, toolkit, cuDNN and NCCL does not. The libraries are opened, which takes a moment; one that
/// is missing says so.
Json softwareVersions(const Nvml& nvml, int built);

}  // namespace muster::cuda
