// SPDX-License-Identifier: Apache-2.0
// The ABI version this host speaks; a unit of its own so that a test can build the host of a later version.
#pragma once

#include <cstdint>

namespace muster {

uint32_t hostAbiMajor();
uint32_t hostAbiMinor();

}  // namespace muster
