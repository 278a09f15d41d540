// SPDX-License-Identifier: Apache-2.0
// One rank's training: its program, its data, its part of the group's steps.
#pragma once

#include <memory>
#include <vector>

#include "plugins/train/data/loader.h"
#include "plugins/train/group.h"
#include "plugins/train/params.h"
#include "plugins/train/reducer.h"
#include "plugins/train/tests.h"

namespace muster::train {

/// One iteration as the device's clock saw it.
struct Step {
  double seconds = 0;         ///< from asking for data to the end of the optimizer
  double wait = 0;            ///< of these: for the batch
  double loss = 0;            ///< of this rank's batch, before the update
  uint64_t ownGradients = 0;  ///< with Sum::kApart: hash of this rank's gradients before they were summed
};

/// When a step sums the gradients over the ranks.
enum class Sum {
  kOverlapping,  ///< while the backward pass runs
  kApart,        ///< after it, so that the ranks' own gradients can be told from a wrong sum
};

class Trainer {
 public:
  /// Compiles the model, starts its parameters by `seed` (equal on all ranks) and the loader of `batches`
  /// batches. `data` may be null where the device reads no inputs (sim). Both references must outlive it.
  static Result<std::unique_ptr<Trainer>> make(const Bench& bench, const Group& group, const Params& params,
                                               const Dataset* data, uint64_t batches, uint64_t seed);

  /// One step of the whole group. A loss that is no number is an error.
  Result<Step> step(Sum sum = Sum::kOverlapping);
  /// The work of a step on the last batch without the others: parameters of the ranks are not the same
  /// afterwards.
  Status stepAlone();
  /// Ranks whose gradients or parameters differ from the others' after the last step: all ranks share the
  /// sums of all steps.
  Result<std::vector<int>> divergedRanks();

  [[nodiscard]] Program& program() { return *program_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] GradientReducer& reducer() { return reducer_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }

 private:
  Trainer(const Bench& bench, const Group& group, const Params& params, Model model,
          std::unique_ptr<Program> program);
  void pinInputs();
  Status takeBatch();
  Status backwardApart(uint64_t& ownGradients);

  const Bench& bench_;
  const Group& group_;
  Params params_;
  Model model_;
  std::unique_ptr<Program> program_;
  GradientReducer reducer_;
  std::unique_ptr<Loader> loader_;
  std::vector<std::unique_ptr<Pin>> pins_;  ///< of the loader's memory
  uint64_t steps_ = 0;
};

/// Puts a batch into a program's inputs.
Status writeBatch(const Model& model, const Batch& batch, Program& program);

}  // namespace muster::train
