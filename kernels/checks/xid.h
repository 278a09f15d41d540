// SPDX-License-Identifier: Apache-2.0
// XIDs, the numbers under which NVIDIA's driver reports errors: which ones applications cause, what they
// mean.
#pragma once

#include <string>

namespace muster {

/// XIDs that an application's fault (or our own kill) causes; every other one is the fault of the device or
/// the driver.
bool isApplicationXid(int xid);

/// "XID 79 (GPU has fallen off the bus)", in the words of NVIDIA's catalogue
/// (docs.nvidia.com/deploy/xid-errors).
std::string xidText(int xid);

}  // namespace muster
