// SPDX-License-Identifier: Apache-2.0
// See measure.h. Ranks agree on the batch by its longest time, so all run equally often.
#include "plugins/collective/measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace muster::collective {
namespace {

constexpr double kLargestBatch = 1000;

/// Adds what another check of the same rank found.
void add(CollectiveMismatch& sum, const CollectiveMismatch& found) {
  if (sum.wrong == 0) {
    sum = found;
    return;
  }
  sum.wrong += found.wrong;
}

Status checkOnce(Communicator& group, Collective& work, Timing& timing) {
  MUSTER_CHECK_OK(group.synchronize());
  MUSTER_TRY(CollectiveMismatch found, work.check());
  add(timing.mismatch, found);
  return {};
}

/// Runs so many times that a sample lasts about as long as it should: the same number on all ranks.
Result<int> chooseBatch(const Placement& placement, Collective& work) {
  MUSTER_TRY(double once, placement.group.time([&] { return work.run(); }));
  MUSTER_TRY(std::vector<double> longest, placement.group.maxOverRanks({once}));
  const double wanted = std::ceil(placement.params.sampleTime / std::max(longest[0], 1e-9));
  return static_cast<int>(std::clamp(wanted, 1.0, kLargestBatch));
}

Status runBatch(Collective& work, const Params& params, int batch) {
  if (params.graph) return work.replay();
  for (int run = 0; run < batch; ++run) MUSTER_CHECK_OK(work.run());
  return {};
}

/// Checks the last run of each sample. In place that run's inputs are what the one before it left, and sums
/// grow with every run: what can be checked there is a sample of one run, made ready anew.
Result<std::vector<double>> sample(const Placement& placement, Collective& work, int batch, Timing& timing) {
  const Params& params = placement.params;
  const bool anew = placement.spec.inPlace && batch == 1 && !params.graph;
  std::vector<double> seconds;
  for (int i = 0; i < params.iterations; ++i) {
    if (!placement.keepGoing()) return Error{ErrorCode::kTimeout, "the sweep was cancelled", ""};
    if (anew) MUSTER_CHECK_OK(work.prepare(placement.seed + static_cast<uint64_t>(i)));
    MUSTER_CHECK_OK(placement.group.barrier());
    MUSTER_TRY(double took, placement.group.time([&] { return runBatch(work, params, batch); }));
    seconds.push_back(took / batch);
    if (anew || !placement.spec.inPlace) MUSTER_CHECK_OK(checkOnce(placement.group, work, timing));
  }
  return placement.group.maxOverRanks(seconds);
}

Status checkTimes(const std::vector<double>& seconds) {
  for (double one : seconds)
    if (!std::isfinite(one) || one <= 0)
      return Error{ErrorCode::kCorrupt, "a run took " + std::to_string(one) + " s; expected a positive time",
                   ""};
  return {};
}

}  // namespace

double Timing::mean() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

const Timing* SizeResult::timing(bool inPlace) const {
  const auto found = std::find_if(timings.begin(), timings.end(),
                                  [&](const Timing& timing) { return timing.inPlace == inPlace; });
  return found == timings.end() ? nullptr : &*found;
}

Status measure(const Placement& placement, Timing& timing) {
  Communicator& group = placement.group;
  const Params& params = placement.params;
  timing.inPlace = placement.spec.inPlace;
  MUSTER_TRY(std::unique_ptr<Collective> work, group.collective(placement.spec));
  for (int i = 0; i < params.checks; ++i) {
    MUSTER_CHECK_OK(work->prepare(placement.seed + static_cast<uint64_t>(i)));
    MUSTER_CHECK_OK(work->run());
    MUSTER_CHECK_OK(checkOnce(group, *work, timing));
  }
  for (int i = 0; i < params.warmup; ++i) MUSTER_CHECK_OK(work->run());
  MUSTER_TRY(int batch, chooseBatch(placement, *work));
  if (params.graph) {
    MUSTER_CHECK_OK(work->record(batch));
    MUSTER_CHECK_OK(work->replay());  // the first launch of a graph also uploads it
  }
  MUSTER_TRY(timing.seconds, sample(placement, *work, batch, timing));
  MUSTER_CHECK_OK(checkTimes(timing.seconds));
  MUSTER_TRY(std::vector<double> worst, group.maxOverRanks({static_cast<double>(timing.mismatch.wrong)}));
  timing.mostWrong = worst[0];
  return {};
}

}  // namespace muster::collective
