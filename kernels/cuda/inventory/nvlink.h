// SPDX-License-Identifier: Apache-2.0
// The NVLinks of one GPU: how many work, how fast, and what errors they counted.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/inventory/nvml/nvml.h"

namespace muster::cuda {

/// What a GPU's links are like now.
struct NvLinks {
  int present = 0;  ///< links that the GPU has; 0: none, and nothing else is told
  int active = 0;
  std::vector<int> inactive;
  Answer<double> bytesPerSecond;  ///< one way, of the slowest active link
};
/// Absent where the GPU has no NVLink.
Answer<NvLinks> readNvLinks(const Nvml& nvml, nvmlDevice_t device);

/// Errors of all links together since the driver was loaded: replays, recoveries and CRC errors up to Hopper;
/// receive and integrity errors and recoveries from Blackwell on.
struct NvLinkErrors {
  double total = 0;
  std::string links;  ///< "link 3: 12, link 7: 1"
};
/// `present` of readNvLinks(). Absent where no way to count them works.
Answer<NvLinkErrors> readNvLinkErrors(const Nvml& nvml, nvmlDevice_t device, int present);

}  // namespace muster::cuda
