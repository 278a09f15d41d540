// SPDX-License-Identifier: Apache-2.0
// Copies of a GPU: by its copy engines or by our kernels, over PCIe, NVLink or through the host.
#pragma once

#include <memory>

#include "kernels/cuda/device.h"
#include "kernels/interfaces/copies.h"

namespace muster::cuda {

std::unique_ptr<Copies> makeCudaCopies(CudaDevice& device);

}  // namespace muster::cuda
