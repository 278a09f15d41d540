// SPDX-License-Identifier: Apache-2.0
// What a case of this plugin is asked to do, from its parameters.
#pragma once

#include "kernels/interfaces/nn.h"
#include "plugins/sdk/params.h"
#include "plugins/train/data/dataset.h"
#include "plugins/train/models/model.h"

namespace muster::train {

/// What all tests work with.
struct Params {
  void declareImages(sdk::ParamTable& param);  ///< sizes of a ResNet
  void declareTraining(sdk::ParamTable& param);
  Status complete();

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
  int workers = 4;
  int prefetch = 4;
  bool augment = false;
  double bucketBytes = 25 << 20;
  int soloIterations = 10;
  std::string interface;  ///< network interface or address for the group
  double groupTimeout = 60;
};

struct TrainingParams : Params {
  void declare(sdk::ParamTable& param);
};
/// Always in deterministic mode, and nothing is timed.
struct DeterminismParams : Params {
  void declare(sdk::ParamTable& param);
  Status complete();
};
/// Always in deterministic mode: every pass must give the same bits, and every device uses the same
/// algorithms.
struct InferenceParams : Params {
  void declare(sdk::ParamTable& param);
  Status complete();
};

}  // namespace muster::train
