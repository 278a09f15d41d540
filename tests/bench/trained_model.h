// SPDX-License-Identifier: Apache-2.0
// One model with inputs and an optimizer on one device, ready to be trained step by step: what benchmarks
// time.
#pragma once

#include <memory>

#include "kernels/interfaces/nn.h"
#include "plugins/train/models/model.h"

namespace muster::bench {

/// Builds, compiles and fills a model: images normal, tokens and labels uniform, all of one seed. SGD with
/// momentum for images, AdamW for text. The Nn must outlive the program.
Result<std::unique_ptr<Program>> trainedModel(Nn& nn, const train::ModelSpec& spec,
                                              const ProgramOptions& options);

/// Forward, backward and optimizer, queued. `rate` is a share of the learning rate that benchmarks use.
Status trainingStep(Program& program, const train::ModelSpec& spec, double rate = 1);

}  // namespace muster::bench
