// SPDX-License-Identifier: Apache-2.0
// Runs the test data through a trained model and counts correct answers.
#include "plugins/train/evaluate.h"

#include <algorithm>

#include "plugins/train/figures.h"

namespace muster::train {
namespace {

struct Tally {
  int64_t right = 0;
  int64_t all = 0;
};

/// Every rank tests with rank 0's running statistics, as torch's DistributedDataParallel does.
Status shareStatistics(const Group& group, Program& program) {
  if (group.size() == 1) return {};
  for (size_t i = 0; i < program.network().statistics().size(); ++i) {
    const auto index = static_cast<int>(i);
    MUSTER_TRY(std::vector<float> own, program.readStatistics(index));
    MUSTER_TRY(const std::vector<double> values, group.ofLeader({own.begin(), own.end()}));
    MUSTER_CHECK_OK(program.writeStatistics(index, std::vector<float>(values.begin(), values.end())));
  }
  return {};
}

/// Of a batch that is not full: the program counts all its rows, so these are counted one by one.
Result<int64_t> rightOfSome(const Trainer& trainer, const Batch& batch, Program& program) {
  MUSTER_TRY(std::vector<float> logits, program.readTensor(trainer.model().logits));
  const auto classes = static_cast<size_t>(trainer.model().network.shape(trainer.model().logits).back());
  const size_t rowsOfSample =
      batch.labels.size() * classes == logits.size()
          ? batch.labels.size() /
                static_cast<size_t>(trainer.model().network.shape(trainer.model().labels)[0])
          : 1;
  int64_t right = 0;
  for (size_t row = 0; row < static_cast<size_t>(batch.valid) * rowsOfSample; ++row) {
    const auto first = logits.begin() + static_cast<int64_t>(row * classes);
    const auto best = std::max_element(first, first + static_cast<int64_t>(classes));
    right += best - first == batch.labels[row] ? 1 : 0;
  }
  return right;
}

Status testBatch(const Batch& batch, Trainer& trainer, Tally& tally) {
  Program& program = trainer.program();
  const auto rows = static_cast<int>(trainer.model().network.shape(trainer.model().labels)[0]);
  if (batch.valid == 0) return {};
  MUSTER_CHECK_OK(writeBatch(trainer.model(), batch, program));
  MUSTER_CHECK_OK(program.forward(Pass::kEvaluation));
  const auto labels = static_cast<int64_t>(batch.labels.size()) / rows * batch.valid;
  MUSTER_TRY(int64_t right, batch.valid == rows ? program.correct() : rightOfSome(trainer, batch, program));
  tally.right += right;
  tally.all += labels;
  return {};
}

Result<Tally> testOwnPart(const Bench& bench, const Group& group, const Params& params, const Dataset& data,
                          Trainer& trainer) {
  LoaderSpec spec;
  spec.sampler = {
      data.size(), group.rank(), group.size(), static_cast<int>(params.model.batch), false, true, 0};
  spec.workers = params.workers;
  spec.prefetch = params.prefetch;
  const auto perStep = static_cast<uint64_t>(group.size()) * static_cast<uint64_t>(params.model.batch);
  spec.batches = (data.size() + perStep - 1) / perStep;
  MUSTER_TRY(auto loader, Loader::start(data, spec));
  Tally tally;
  for (uint64_t i = 0; i < spec.batches; ++i) {
    if (bench.host.cancelled()) return Error{ErrorCode::kTimeout, "the test was cancelled", ""};
    MUSTER_TRY(const Batch* batch, loader->next());
    MUSTER_CHECK_OK(testBatch(*batch, trainer, tally));
  }
  return tally;
}

/// A device that reads no inputs says what it would get right.
Result<Tally> testSimulated(Trainer& trainer) {
  MUSTER_CHECK_OK(trainer.program().forward(Pass::kEvaluation));
  MUSTER_TRY(int64_t right, trainer.program().correct());
  return Tally{right, elementsOf(trainer.model().network.shape(trainer.model().labels))};
}

}  // namespace

Result<double> testAccuracy(const Bench& bench, const Group& group, const Params& params, const Dataset* data,
                            Trainer& trainer) {
  Tally tally;
  if (data == nullptr) {
    MUSTER_TRY(tally, testSimulated(trainer));
  } else {
    MUSTER_CHECK_OK(shareStatistics(group, trainer.program()));
    MUSTER_TRY(tally, testOwnPart(bench, group, params, *data, trainer));
  }
  MUSTER_TRY(auto rows, group.gather({static_cast<double>(tally.right), static_cast<double>(tally.all)}));
  return accuracyOf(rows);
}

}  // namespace muster::train
