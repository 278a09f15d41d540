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

/// Which links between the GPU and its Grace CPU (NVLink-C2C) are down. Absent where it has none.
Answer<std::vector<int>> readC2cLinksDown(const Nvml& nvml, nvmlDevice_t device);

/// Errors of one kind of all links together since the driver was loaded.
struct NvLinkCount {
  double total = 0;
  std::string links;  ///< "link 3: 12, link 7: 1"
};
/// Each is absent where no way to count it works.
struct NvLinkErrors {
  Answer<NvLinkCount>
      repeated;             ///< replays and recoveries; from Blackwell on receive and integrity errors too
  Answer<NvLinkCount> crc;  ///< up to Hopper
};
/// `present` of readNvLinks().
NvLinkErrors readNvLinkErrors(const Nvml& nvml, nvmlDevice_t device, int present);

/// Bytes that all links together have sent.
Answer<double> readNvLinkSentBytes(const Nvml& nvml, nvmlDevice_t device);

}  // namespace muster::cuda
