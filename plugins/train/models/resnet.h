// SPDX-License-Identifier: Apache-2.0
// Residual networks.
#pragma once

#include "plugins/train/models/model.h"

namespace muster::train {

Model buildResnet(const ModelSpec& spec);

}  // namespace muster::train
