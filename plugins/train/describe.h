// SPDX-License-Identifier: Apache-2.0
// What the train plugin offers.
#pragma once

namespace muster::train {

/// The JSON of describe(), see plugins/abi/README.md.
const char* describe();

}  // namespace muster::train
