// SPDX-License-Identifier: Apache-2.0
// The language model.
#pragma once

#include "plugins/train/models/model.h"

namespace muster::train {

Model buildTransformer(const ModelSpec& spec);

}  // namespace muster::train
