// SPDX-License-Identifier: Apache-2.0
// Finds NVIDIA's libraries where they are usually installed, since they are too large to be part of our tree.
#pragma once

#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::cuda {

extern const char* const kCublasLt;  ///< the SONAME that this build was linked against
extern const char* const kNvrtc;  ///< compiles cuDNN's kernels, which looks for it by itself and says little
extern const char* const kCudnn;
extern const char* const kNccl;

/// Opens a library for good, so that a module which needs it finds it loaded: where the dynamic loader looks
/// (LD_LIBRARY_PATH, ld.so.conf), then in toolkitFolders(). kNotFound names the library, where it was looked
/// for and the packages that hold it.
Status openToolkitLibrary(const std::string& soname);

/// The folders where a toolkit or Python's `nvidia` packages put libraries: below $CUDA_HOME or
/// /usr/local/cuda, and below each PYTHONPATH entry and Python's usual places. Only those that exist.
std::vector<std::string> toolkitFolders();

}  // namespace muster::cuda
