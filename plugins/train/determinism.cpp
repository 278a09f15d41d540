// SPDX-License-Identifier: Apache-2.0
// Test "determinism": the same training twice must give the same bits, and all ranks the same gradients.
#include <fmt/format.h>

#include <bit>
#include <set>

#include "plugins/train/report.h"
#include "plugins/train/trainer.h"

namespace muster::train {
namespace {

/// What one training leaves behind.
struct Trace {
  std::vector<double> losses;
  std::vector<uint64_t> own;        ///< hash of this rank's gradients before each sum
  std::vector<uint64_t> gradients;  ///< the same after it
  uint64_t parameters = 0;          ///< hash after the last step
  std::set<int> diverged;
};

Result<Trace> trainOnce(const Bench& bench, const Group& group, const Params& params, const Dataset* data,
                        uint64_t seed, int round) {
  const auto iterations = static_cast<uint64_t>(params.active);
  MUSTER_TRY(auto trainer, Trainer::make(bench, group, params, data, iterations, seed));
  Trace trace;
  for (uint64_t i = 0; i < iterations; ++i) {
    if (bench.host.cancelled()) return Error{ErrorCode::kTimeout, "training was cancelled", ""};
    MUSTER_TRY(Step step, trainer->step(Sum::kApart));
    MUSTER_TRY(uint64_t hash, bench.device.hash(trainer->program().gradients()));
    MUSTER_TRY(std::vector<int> diverged, trainer->divergedRanks());
    trace.losses.push_back(step.loss);
    trace.own.push_back(step.ownGradients);
    trace.gradients.push_back(hash);
    trace.diverged.insert(diverged.begin(), diverged.end());
    bench.host.progress(
        (static_cast<double>(round) + static_cast<double>(i + 1) / static_cast<double>(iterations)) / 2,
        fmt::format("run {}, iteration {}, loss {:.6f}", round + 1, i + 1, step.loss));
  }
  MUSTER_TRY(trace.parameters, bench.device.hash(trainer->program().parameters()));
  return trace;
}

/// What differs between two runs.
struct Difference {
  int losses = 0;
  int gradients = 0;
  bool parameters = false;
  std::string first;
  bool own = true;  ///< the first one is in what this rank computed itself: only sums are of all ranks
};

Difference compare(const Trace& a, const Trace& b) {
  Difference difference;
  for (size_t i = 0; i < a.losses.size(); ++i) {
    const bool loss = std::bit_cast<uint64_t>(a.losses[i]) != std::bit_cast<uint64_t>(b.losses[i]);
    const bool own = a.own[i] != b.own[i];
    const bool gradient = own || a.gradients[i] != b.gradients[i];
    difference.losses += loss ? 1 : 0;
    difference.gradients += gradient ? 1 : 0;
    if (!(loss || gradient) || !difference.first.empty()) continue;
    difference.own = loss || own;
    difference.first = fmt::format(
        "iteration {}: loss {:a}, then {:a}; gradients {:016x}, then {:016x}; their sums {:016x}, then "
        "{:016x}",
        i + 1, a.losses[i], b.losses[i], a.own[i], b.own[i], a.gradients[i], b.gradients[i]);
  }
  difference.parameters = a.parameters != b.parameters;
  if (difference.parameters && difference.first.empty())
    difference.first = fmt::format("parameters {:016x}, then {:016x}", a.parameters, b.parameters);
  return difference;
}

Status reportDifference(const Bench& bench, const Group& group, const Trace& trace,
                        const Difference& difference) {
  const double now = bench.device.now();
  const auto tell = [&](const char* metric, double value) {
    return bench.host.measurement(metric, "count", {value}, {}, now);
  };
  MUSTER_CHECK_OK(tell("loss_mismatches", difference.losses));
  MUSTER_CHECK_OK(tell("gradient_mismatches", difference.gradients));
  MUSTER_CHECK_OK(tell("parameter_mismatches", difference.parameters ? 1 : 0));
  if (!difference.first.empty()) {
    std::string text =
        fmt::format("rank {} on {}: {}", group.rank(), bench.device.info().id, difference.first);
    if (group.size() > 1)
      text +=
          difference.own ? fmt::format(", from rank {}", group.rank()) : ", from a rank that cannot be told";
    bench.host.log(MUSTER_LOG_ERROR, text);
    MUSTER_CHECK_OK(bench.host.fact("first_fault", text));
  }
  if (group.leads())
    MUSTER_CHECK_OK(bench.host.fact("final_parameters", fmt::format("{:016x}", trace.parameters)));
  return reportDiverged(bench, group, trace.diverged);
}

}  // namespace

Status runDeterminism(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(DeterminismParams params, sdk::readParams<DeterminismParams>(json));
  params.data.seed = seed;
  MUSTER_TRY(Group group,
             Group::form(bench.open, {bench.place, params.interface, params.groupTimeout}, bench.store));
  MUSTER_TRY(auto data, openDataset(params.data));
  MUSTER_TRY(Trace first, trainOnce(bench, group, params, data.get(), seed, 0));
  MUSTER_TRY(Trace second, trainOnce(bench, group, params, data.get(), seed, 1));
  first.diverged.insert(second.diverged.begin(), second.diverged.end());
  return reportDifference(bench, group, first, compare(first, second));
}

}  // namespace muster::train
