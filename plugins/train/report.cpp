// SPDX-License-Identifier: Apache-2.0
// Reports the measurements and artifacts of a training run.
#include "plugins/train/report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "plugins/train/figures.h"
#include "plugins/train/teller.h"
#include "runner/core/statistics.h"

namespace muster::train {
namespace {

constexpr size_t kShortRun = 20;  ///< iterations below which a loss need not have fallen

std::vector<double> secondsOf(const std::vector<Step>& steps) {
  std::vector<double> seconds;
  seconds.reserve(steps.size());
  for (const Step& step : steps) seconds.push_back(step.seconds);
  return seconds;
}

double waitShare(const std::vector<Step>& steps) {
  double wait = 0;
  double all = 0;
  for (const Step& step : steps) {
    wait += step.wait;
    all += step.seconds;
  }
  return all > 0 ? wait / all : 0;
}

/// Largest resident memory of this process so far, in bytes.
double processPeak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

Status reportOwn(const Reported& of, const Outcome& outcome) {
  const std::vector<double> seconds = secondsOf(outcome.steps);
  const double flops = of.trainer.model().network.trainingFlops();
  Teller tell(of.bench);
  tell.samples("step_time", "s", seconds)
      .samples("rank_throughput", "samples/s", ratesOf(static_cast<double>(of.params.model.batch), seconds))
      .samples("model_flops", "FLOP/s", ratesOf(flops, seconds))
      .number("data_wait_share", "ratio", waitShare(outcome.steps))
      .number("step_time_drift", "ratio", driftOf(seconds))
      .number("device_memory", "B", static_cast<double>(of.trainer.program().memoryBytes()))
      .number("process_memory", "B", processPeak())
      .text("implementation", of.trainer.program().implementation());
  const auto& peaks = of.bench.device.info().peaks;
  if (auto peak = peaks.find(std::string("flops.") + dtypeName(of.params.program.dtype)); peak != peaks.end())
    tell.number("model_flop_utilisation", "ratio", flops / medianOf(seconds) / peak->second);
  if (outcome.alone > 0) {
    double waits = 0;
    for (const Step& step : outcome.steps) waits += step.wait;
    const CommunicationTimes times = {medianOf(seconds) - waits / static_cast<double>(outcome.steps.size()),
                                      outcome.alone, outcome.transfer};
    tell.number("compute_time", "s", outcome.alone)
        .number("communication_time", "s", outcome.transfer)
        .number("communication_share", "ratio", communicationShare(times))
        .number("communication_overlap", "ratio", communicationOverlap(times));
  }
  return tell.status();
}

/// The mean of a value over the ranks that answer.
Result<std::vector<double>> meanOverRanks(const Group& group, const std::vector<double>& values) {
  MUSTER_TRY(auto rows, group.gather(values));
  std::vector<double> mean(values.size());
  double count = 0;
  for (const auto& row : rows) {
    if (row.empty()) continue;
    for (size_t i = 0; i < row.size(); ++i) mean[i] += row[i];
    ++count;
  }
  for (double& value : mean) value /= count;
  return mean;
}

Status reportLoss(Teller& tell, const std::vector<double>& losses) {
  const double start = meanOfFirst(losses);
  const double end = meanOfLast(losses);
  tell.number("loss_start", "number", start).number("loss_end", "number", end);
  tell.samples("loss", "number", losses);
  if (losses.size() >= kShortRun) tell.number("loss_fell", "bool", end < start ? 1 : 0);
  return tell.status();
}

Status keepResults(const Reported& of, const std::vector<double>& seconds) {
  ResultsFile results;
  results.model = of.params.model.name;
  results.worldSize = of.group.size();
  results.batch = of.params.model.batch;
  results.iterations = seconds.size();
  for (double s : seconds) results.totalSeconds += s;
  results.device = of.bench.device.info().kind == "gpu" ? "cuda" : "cpu";
  results.backend = of.group.implementation().substr(0, of.group.implementation().find(' '));
  return of.bench.host.artifact("results.json", "application/json", dumpJson(resultsJson(results), 2));
}

Status reportGroup(const Reported& of, const Outcome& outcome, const std::vector<double>& slowest,
                   const std::vector<double>& losses) {
  const auto samples = static_cast<double>(of.params.model.batch * of.group.size());
  Teller tell(of.bench);
  tell.samples("throughput", "samples/s", ratesOf(samples, slowest))
      .number("gradient_checks", "count", outcome.gradientChecks)
      .number("parameters", "count", static_cast<double>(of.trainer.model().network.parameterElements()))
      .text("communication", of.group.implementation());
  if (outcome.solo > 0) tell.number("scaling_efficiency", "ratio", outcome.solo / medianOf(slowest));
  if (!outcome.accuracies.empty())
    tell.number("test_accuracy", "ratio", outcome.accuracies.back())
        .samples("epoch_accuracy", "ratio", outcome.accuracies);
  MUSTER_CHECK_OK(reportLoss(tell, losses));
  return keepResults(of, slowest);
}

}  // namespace

Status reportDiverged(const Bench& bench, const Group& group, const std::set<int>& diverged) {
  // Rank 0 speaks for all. Any other rank speaks for itself, so that its own node's record is rejected, too.
  Teller tell(bench);
  if (group.leads())
    tell.number("diverged_ranks", "count", static_cast<double>(diverged.size()));
  else if (diverged.count(group.rank()) > 0)
    tell.number("diverged_ranks", "count", 1);
  if (diverged.empty()) return tell.status();
  MUSTER_TRY(const std::string names, group.nameRanks(diverged));
  // What it received may have been changed by a link, or by a rank that passed it on.
  return tell
      .text("diverged_first_fault", names +
                                        ": other gradients or parameters than the others' after the same "
                                        "sums, from a rank that cannot be told")
      .status();
}

Status report(const Reported& of, const Outcome& outcome) {
  MUSTER_TRY(std::vector<double> slowest, of.group.largest(secondsOf(outcome.steps)));
  MUSTER_TRY(std::vector<double> losses, meanOverRanks(of.group, outcome.losses));
  MUSTER_CHECK_OK(reportOwn(of, outcome));
  MUSTER_CHECK_OK(reportDiverged(of.bench, of.group, outcome.diverged));
  return of.group.leads() ? reportGroup(of, outcome, slowest, losses) : Status();
}

}  // namespace muster::train
