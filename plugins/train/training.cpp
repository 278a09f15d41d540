// SPDX-License-Identifier: Apache-2.0
// Test "training": real steps of a real model over all ranks, timed, with their loss and their gradients
// checked.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "plugins/train/data/download.h"
#include "plugins/train/evaluate.h"
#include "plugins/train/figures.h"
#include "plugins/train/report.h"
#include "plugins/train/trainer.h"
#include "runner/core/statistics.h"

namespace muster::train {
namespace {

constexpr int kTransfers = 5;  ///< how often communication is timed by itself

/// The data of a case; null where the device reads no inputs.
struct Data {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
};

Result<Data> openData(const Bench& bench, const Group& group, const Params& params) {
  Data data;
  if (!bench.nn.readsInputs()) return data;
  DatasetSpec train = params.data;
  if (params.download) {
    train.folder = downloadFolder(params.data);
    if (bench.place.leadsNode) MUSTER_CHECK_OK(fetchDataset(bench.host, params.data, params.downloadUrl));
    MUSTER_CHECK_OK(group.barrier());
  }
  MUSTER_TRY(data.train, openDataset(train));
  if (params.epochs == 0) return data;
  DatasetSpec test = train;
  test.split = Split::kTest;
  test.limit = params.testSamples;
  MUSTER_TRY(data.test, openDataset(test));
  return data;
}

/// How many iterations a run has, and how many of them an epoch.
struct Course {
  uint64_t warmup = 0;
  uint64_t active = 0;
  uint64_t epoch = 0;  ///< 0: no epochs
};

Result<Course> plan(const Params& params, const Group& group, const Dataset* data) {
  Course course{static_cast<uint64_t>(params.warmup), static_cast<uint64_t>(params.active), 0};
  if (params.epochs == 0) return course;
  const uint64_t samples = data != nullptr ? data->size() : nominalSize(params.data);
  course.epoch = samples / (static_cast<uint64_t>(params.model.batch) * static_cast<uint64_t>(group.size()));
  const uint64_t all = course.epoch * static_cast<uint64_t>(params.epochs);
  if (all < 2)
    return Error{ErrorCode::kUsage,
                 fmt::format("{} samples make {} steps of {} ranks x {}; expected at least 2", samples, all,
                             group.size(), params.model.batch),
                 "epochs"};
  course.warmup = std::min(course.warmup, all / 2);
  course.active = all - course.warmup;
  return course;
}

/// The run: steps, what they told, and what was found wrong.
class Run {
 public:
  Run(const Bench& bench, const Group& group, const Params& params, const Data& data, Trainer& trainer,
      Course course)
      : bench_(bench), group_(group), params_(params), data_(data), trainer_(trainer), course_(course) {}

  Status train(Outcome& outcome) {
    MUSTER_CHECK_OK(group_.barrier());
    for (uint64_t i = 0; i < course_.warmup; ++i) MUSTER_CHECK_OK(advance(outcome, false));
    if (course_.warmup > 0) MUSTER_CHECK_OK(checkGradients(outcome));
    MUSTER_CHECK_OK(group_.barrier());
    for (uint64_t i = 0; i < course_.active; ++i) MUSTER_CHECK_OK(advance(outcome, true));
    return checkGradients(outcome);
  }

  /// Work without communication, communication without work, and one rank by itself. Run last: it leaves the
  /// ranks with different parameters.
  Status takeApart(Outcome& outcome) {
    if (group_.size() == 1 || params_.soloIterations == 0) return {};
    MUSTER_TRY(outcome.transfer, timeTransfers());
    MUSTER_TRY(outcome.alone, timeAlone());
    MUSTER_CHECK_OK(group_.barrier());
    if (group_.leads()) {
      MUSTER_TRY(outcome.solo, timeAlone());
    }
    return group_.barrier();
  }

 private:
  Status advance(Outcome& outcome, bool timed) {
    if (bench_.host.cancelled()) return Error{ErrorCode::kTimeout, "training was cancelled", ""};
    const uint64_t done = trainer_.steps();
    MUSTER_TRY(Step step, trainer_.step());
    outcome.losses.push_back(step.loss);
    if (timed) outcome.steps.push_back(step);
    const auto all = static_cast<double>(course_.warmup + course_.active);
    bench_.host.progress(
        static_cast<double>(done + 1) / all,
        fmt::format("{} iteration {}, loss {:.4f}", timed ? "active" : "warm-up", done + 1, step.loss));
    if (course_.epoch == 0 || (done + 1) % course_.epoch != 0) return {};
    MUSTER_TRY(double accuracy, testAccuracy(bench_, group_, params_, data_.test.get(), trainer_));
    outcome.accuracies.push_back(accuracy);
    return {};
  }

  Status checkGradients(Outcome& outcome) {
    MUSTER_TRY(std::vector<int> diverged, trainer_.divergedRanks());
    ++outcome.gradientChecks;
    outcome.diverged.insert(diverged.begin(), diverged.end());
    return {};
  }

  Result<double> timeAlone() {
    std::vector<double> seconds;
    for (int i = 0; i < params_.soloIterations; ++i) {
      const double start = bench_.device.now();
      MUSTER_CHECK_OK(trainer_.stepAlone());
      seconds.push_back(bench_.device.now() - start);
    }
    return medianOf(seconds);
  }

  Result<double> timeTransfers() {
    std::vector<double> seconds;
    for (int i = 0; i < kTransfers; ++i) {
      MUSTER_CHECK_OK(group_.barrier());
      MUSTER_TRY(double took, group_.communicator()->time([this] { return trainer_.reducer().repeat(); }));
      seconds.push_back(took);
    }
    return medianOf(seconds);
  }

  const Bench& bench_;
  const Group& group_;
  const Params& params_;
  const Data& data_;
  Trainer& trainer_;
  Course course_;
};

}  // namespace

Status runTraining(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(TrainingParams params, sdk::readParams<TrainingParams>(json));
  params.data.seed = seed;
  MUSTER_TRY(Group group,
             Group::form(bench.open, {bench.place, params.interface, params.groupTimeout}, bench.store));
  MUSTER_TRY(Data data, openData(bench, group, params));
  MUSTER_TRY(Course course, plan(params, group, data.train.get()));
  MUSTER_TRY(auto trainer,
             Trainer::make(bench, group, params, data.train.get(), course.warmup + course.active, seed));
  Outcome outcome;
  Run run(bench, group, params, data, *trainer, course);
  MUSTER_CHECK_OK(run.train(outcome));
  MUSTER_CHECK_OK(run.takeApart(outcome));
  return report({bench, group, params, *trainer}, outcome);
}

}  // namespace muster::train
