// SPDX-License-Identifier: Apache-2.0
// What the rdma plugin offers, as plugins/abi/README.md describes it.
#pragma once

#include <string>

namespace muster::rdma {

/// The JSON of describe().
std::string describe();

}  // namespace muster::rdma
