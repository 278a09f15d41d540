// SPDX-License-Identifier: Apache-2.0
// From what the host tells a plugin's session (context_json) to an open device.
#pragma once

#include <memory>
#include <string>

#include "kernels/interfaces/backend.h"

namespace muster {

/// One rank's device with the backend behind it, which must outlive it.
struct OpenDevice {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Device> device;
};

/// Opens the backend that `context` names, for a test that looks at the node as a whole.
Result<std::unique_ptr<Backend>> openBackend(const Json& context);

/// Opens the backend and the device that `context` names. A context without a device is an error: a test that
/// measures one must not choose one by itself.
Result<OpenDevice> openDevice(const Json& context);

}  // namespace muster
