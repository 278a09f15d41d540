// SPDX-License-Identifier: Apache-2.0
// How often a trained model is right on samples it has not seen.
#pragma once

#include "plugins/train/trainer.h"

namespace muster::train {

/// Share of the test set's samples (tokens) that the group's model gets right. Each rank takes its part, none
/// is left out or counted twice; running statistics are those of rank 0. `data` may be null where the device
/// reads no inputs.
Result<double> testAccuracy(const Bench& bench, const Group& group, const Params& params, const Dataset* data,
                            Trainer& trainer);

}  // namespace muster::train
