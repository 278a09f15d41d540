// SPDX-License-Identifier: Apache-2.0
// What the train plugin offers.
#pragma once

#include <string>

namespace muster::train {

/// The JSON of describe(), see plugins/abi/README.md.
std::string describe();

}  // namespace muster::train
