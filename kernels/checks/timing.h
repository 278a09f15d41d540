// SPDX-License-Identifier: Apache-2.0
// Times repeated work: warm up to a plateau, then sample until the rate has converged.
#pragma once

#include <functional>
#include <vector>

#include "kernels/interfaces/device.h"

namespace muster {

struct SamplingOptions {
  double warmupMin = 0.2;      ///< seconds of warm-up at least
  double warmupMax = 5;        ///< and at most; it ends early once the last batches agree within 2%
  double minTime = 1;          ///< seconds of sampling at least
  double maxTime = 10;         ///< and at most
  double targetError = 0.005;  ///< relative standard error at which sampling may end after minTime
  double sampleTime = 0.02;    ///< seconds that one sample should last; short work is batched
  size_t minSamples = 5;
  size_t maxSamples = 4000;
  /// Called after each sample, outside of its time, to check what its last piece left; empty: nothing.
  std::function<Status()> check = {};
  bool checkWarmup = false;  ///< after each batch of the warm-up, too
};

struct Sampling {
  /// Device seconds of one piece of work, per sample (batch time / batch size). The first may be of the
  /// warm-up: what fell below 60% of the sampled rate after the first plateau.
  std::vector<double> seconds;
  size_t batch = 1;
  double warmup = 0;         ///< seconds it took
  bool plateau = false;      ///< the warm-up reached a steady rate
  double relativeError = 0;  ///< reached
};

/// Times `work` (which queues one piece). `keepGoing` is asked between samples with the fraction done; false
/// cancels.
Result<Sampling> sampleWork(Device& device, const std::function<Status()>& work,
                            const SamplingOptions& options, const std::function<bool(double)>& keepGoing);

}  // namespace muster
