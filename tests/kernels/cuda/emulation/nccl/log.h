// SPDX-License-Identifier: Apache-2.0
// The log of the fake NCCL, where NCCL_DEBUG_FILE says, in the form of NCCL's.
#pragma once

#include <string>

namespace muster::emulation {

void ncclInfo(const std::string& line);
void ncclWarn(const std::string& line);
/// Version, and each NCCL_ variable of the environment; once a process.
void ncclSayEnvironment();
/// Whether NCCL_DEBUG_SUBSYS asks for a line about each operation.
bool ncclSaysTuning();

}  // namespace muster::emulation
