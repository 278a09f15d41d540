// SPDX-License-Identifier: Apache-2.0
// Computes drift, communication share and overlap from the steps of a run.
#include "plugins/train/figures.h"
#include "runner/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/checks/largest.h"

namespace muster::train {
namespace {

double mean(const double* first, size_t count) {
  return count == 0 ? 0 : std::accumulate(first, first + count, 0.0) / static_cast<double>(count);
}

/// 2^-significand, the leading bit included.
double roundingError(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
      return 0x1p-8;
    case Dtype::kF16:
    case Dtype::kTf32:
      return 0x1p-11;
    default:
      return 0x1p-24;
  }
}

size_t tenthOf(size_t count) {
  return std::min(count, std::max<size_t>(1, count / 10));
}

}  // namespace

std::vector<double> ratesOf(double amount, const std::vector<double>& seconds) {
  std::vector<double> rates;
  rates.reserve(seconds.size());
  for (double s : seconds) rates.push_back(amount / s);
  return rates;
}

double outputError(const std::vector<float>& expected, const std::vector<float>& logits, size_t classes,
                   Dtype dtype) {
  double worst = 0;
  for (size_t row = 0; row < expected.size(); row += classes) {
    double difference = 0;
    double size = 0;
    for (size_t i = row; i < row + classes; ++i) {
      difference += std::pow(static_cast<double>(logits[i]) - static_cast<double>(expected[i]), 2);
      size += std::pow(static_cast<double>(expected[i]), 2);
    }
    const double error = difference == 0 ? 0 : std::sqrt(difference / size) / roundingError(dtype);
    if (!std::isfinite(error)) return kNoNumber;
    worst = std::max(worst, error);
  }
  return std::min(worst, kNoNumber);
}

Result<double> accuracyOf(const std::vector<std::vector<double>>& tallies) {
  double right = 0;
  double all = 0;
  for (const auto& tally : tallies) {
    if (tally.empty()) continue;
    if (!(tally[0] >= 0 && tally[0] <= tally[1])) return damagedOnItsWay(true);
    right += tally[0];
    all += tally[1];
  }
  return right / all;
}

double driftOf(const std::vector<double>& seconds) {
  const auto fifth = static_cast<int64_t>((seconds.size() + 4) / 5);
  const double first = medianOf({seconds.begin(), seconds.begin() + fifth});
  const double last = medianOf({seconds.end() - fifth, seconds.end()});
  return first > 0 ? last / first - 1 : 0;
}

double meanOfFirst(const std::vector<double>& values) {
  return mean(values.data(), tenthOf(values.size()));
}

double meanOfLast(const std::vector<double>& values) {
  const size_t count = tenthOf(values.size());
  return mean(values.data() + values.size() - count, count);
}

double communicationShare(const CommunicationTimes& times) {
  return times.step > 0 ? std::max(0.0, times.step - times.alone) / times.step : 0;
}

double communicationOverlap(const CommunicationTimes& times) {
  if (times.transfer <= 0) return 0;
  return std::clamp(1 - std::max(0.0, times.step - times.alone) / times.transfer, 0.0, 1.0);
}

Json resultsJson(const ResultsFile& results) {
  const int64_t global = results.batch * results.worldSize;
  const auto iterations = static_cast<double>(results.iterations);
  const uint64_t samples = static_cast<uint64_t>(global) * results.iterations;
  const bool timed = results.totalSeconds > 0 && results.iterations > 0;
  return Json{
      {"model", results.model},
      {"world_size", results.worldSize},
      {"batch_size_per_gpu", results.batch},
      {"global_batch_size", global},
      {"total_time_seconds", results.totalSeconds},
      {"average_step_time_seconds", timed ? results.totalSeconds / iterations : 0},
      {"throughput_samples_per_second", timed ? static_cast<double>(samples) / results.totalSeconds : 0},
      {"total_samples", samples},
      {"device", results.device},
      {"backend", results.backend}};
}

}  // namespace muster::train
