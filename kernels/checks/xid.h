// SPDX-License-Identifier: Apache-2.0
// XIDs, the numbers under which NVIDIA's driver reports errors: what each says about the GPU, and what it
// means.
#pragma once

#include <string>

namespace muster {

/// What an XID says about the GPU, by NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors).
enum class XidClass {
  kFatal,        ///< a fault of the device or the driver
  kApplication,  ///< caused by an application, or by our own kill of one
  kInformation,  ///< accompanies another event; no fault by itself
  kIgnored,      ///< no action is asked for
  kByText,       ///< an NVLink error from Blackwell on: the log's line says Fatal or Nonfatal
};
XidClass xidClass(int xid);

/// The XID of a GPU that has fallen off the bus.
inline constexpr int kXidFallenOffTheBus = 79;

/// "XID 79 (GPU has fallen off the bus)", in the words of NVIDIA's catalogue.
std::string xidText(int xid);

}  // namespace muster
