// SPDX-License-Identifier: Apache-2.0
// See abi_version.h. MUSTER_HOST_ABI_MINOR is set only by the test that plays a later host.
#include "runner/host/abi_version.h"

#include "plugins/abi/muster_plugin.h"

#ifndef MUSTER_HOST_ABI_MINOR
#define MUSTER_HOST_ABI_MINOR MUSTER_ABI_MINOR
#endif

namespace muster {

uint32_t hostAbiMajor() {
  return MUSTER_ABI_MAJOR;
}
uint32_t hostAbiMinor() {
  return MUSTER_HOST_ABI_MINOR;
}

}  // namespace muster
