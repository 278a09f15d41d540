// SPDX-License-Identifier: Apache-2.0
// What a case of this plugin is asked to do, from its parameters.
#pragma once

#include "kernels/interfaces/nn.h"
#include "plugins/train/data/dataset.h"
#include "plugins/train/models/model.h"
#include "runner/core/json.h"

namespace muster::train {

struct Params {
  ModelSpec model;
  DatasetSpec data;
  ProgramOptions program;
  OptimizerSpec optimizer;
  bool download = false;
  std::string downloadUrl;  ///< in place of the publisher's
  double learningRate = 0.01;
  int warmup = 50;   ///< iterations
  int active = 100;  ///< iterations that are timed
  int epochs = 0;    ///< over the whole data, in place of `active`
  uint64_t testSamples = 0;
  int workers = 2;
  int prefetch = 4;
  bool augment = false;
  double bucketBytes = 25 << 20;
  int soloIterations = 10;
  std::string interface;  ///< network interface or address for the group
  double groupTimeout = 60;
};

/// Reads the parameters of "training"; kUsage names what does not fit together.
Result<Params> readTrainingParams(const Json& json);
/// The same of "determinism": always in deterministic mode, and nothing is timed.
Result<Params> readDeterminismParams(const Json& json);

}  // namespace muster::train
