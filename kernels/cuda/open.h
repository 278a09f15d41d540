// SPDX-License-Identifier: Apache-2.0
// What backend.cpp needs of the part that is compiled only where the CUDA toolkit is.
#pragma once

#include <memory>

#include "kernels/interfaces/copies.h"
#include "kernels/interfaces/device.h"

namespace muster::cuda {

/// Opens a GPU for work. In a build without the toolkit: kUnsupported, which says so.
Result<std::unique_ptr<Device>> openDevice(const DeviceInfo& info);

/// Copies of a GPU that openDevice() opened, which must outlive them.
Result<std::unique_ptr<Copies>> openCopies(Device& device);

}  // namespace muster::cuda
