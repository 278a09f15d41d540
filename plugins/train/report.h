// SPDX-License-Identifier: Apache-2.0
// From what a training run saw to measurements and artifacts.
#pragma once

#include <set>
#include <vector>

#include "plugins/train/trainer.h"

namespace muster::train {

/// What one rank saw.
struct Outcome {
  std::vector<double> losses;      ///< of all iterations
  std::vector<Step> steps;         ///< of the timed ones
  std::vector<double> accuracies;  ///< after each epoch
  std::set<int> diverged;          ///< ranks whose gradients differed in any check
  int gradientChecks = 0;
  double transfer = 0;  ///< seconds of one step's communication by itself; 0: not taken
  double alone = 0;     ///< seconds of one step without communication
  double solo = 0;      ///< the same while all other ranks stand still; rank 0 only
};

struct Reported {
  const Bench& bench;
  const Group& group;
  const Params& params;
  Trainer& trainer;
};

/// Tells which ranks had other gradients than the others, by name on all of them. Called by all ranks, with
/// the same ranks.
Status reportDiverged(const Bench& bench, const Group& group, const std::set<int>& diverged);

/// Reports the results of each rank, and from rank 0 those of the group. Called by all ranks.
Status report(const Reported& of, const Outcome& outcome);

}  // namespace muster::train
