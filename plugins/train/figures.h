// SPDX-License-Identifier: Apache-2.0
// Results of a training run, computed from its steps: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/spec/dtype.h"
#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster::train {

/// `amount` per second, for each of the durations.
std::vector<double> ratesOf(double amount, const std::vector<double>& seconds);

inline constexpr double kNoNumber = 1e9;  ///< outputError() where a logit is NaN or infinite
/// How far rows of `classes` logits are from the expected ones, relative to these (Euclidean norms), in the
/// largest relative rounding errors of one operation in `dtype`; of the worst row.
double outputError(const std::vector<float>& expected, const std::vector<float>& logits, size_t classes,
                   Dtype dtype);

/// How much longer the last fifth of the steps took than the first, by their medians; negative: they got
/// faster.
double driftOf(const std::vector<double>& seconds);

/// Mean of the first (last) tenth of the values, of at least one.
double meanOfFirst(const std::vector<double>& values);
double meanOfLast(const std::vector<double>& values);

/// Share of right answers, from what each rank tells: how many are right, and of how many; nothing for ranks
/// that do not answer. kCorrupt where no rank can have counted that.
Result<double> accuracyOf(const std::vector<std::vector<double>>& tallies);

/// Seconds of one step, from three ways to time it.
struct CommunicationTimes {
  double step = 0;      ///< the group's step without its wait for data
  double alone = 0;     ///< the same work without communication
  double transfer = 0;  ///< the communication without work
};
/// Share of the step that communication adds.
double communicationShare(const CommunicationTimes& times);
/// Share of the communication that work hides, 0 to 1.
double communicationOverlap(const CommunicationTimes& times);

/// What goes into results.json, under the keys of an older acceptance tool so that its users' scripts still
/// read it.
struct ResultsFile {
  std::string model;
  int worldSize = 1;
  int64_t batch = 0;  ///< of one rank
  double totalSeconds = 0;
  uint64_t iterations = 0;
  std::string device;
  std::string backend;
};
/// Every sample is counted once: world size x batch x iterations.
Json resultsJson(const ResultsFile& results);

}  // namespace muster::train
