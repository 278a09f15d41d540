// SPDX-License-Identifier: Apache-2.0
// Warm-up to a plateau, then sampling until the figure is known well enough. All time is the device's own.
#include "kernels/checks/timing.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string>

#include "runner/core/statistics.h"

namespace muster {
namespace {

constexpr size_t kPlateauWindow = 4;     ///< batches that must agree
constexpr double kPlateauSpread = 0.02;  ///< within this share
/// Least share of the sampled rate that passes for a swing: an H100 fell to 0.83.
constexpr double kSettlingRate = 0.6;
constexpr double kWarmupShare = 0.2;  ///< of the progress that is shown
constexpr size_t kMaxBatch = 1u << 20;
constexpr size_t kMaxWarmupBatches = 100000;  ///< ends a warm-up whose clock stands still
constexpr size_t kFewestSamples = 2;          ///< even when one sample exceeds maxTime: a spread needs two

struct Batch {
  size_t pieces = 0;
  double seconds = 0;  ///< of one
};

/// One run of sampleWork(): holds what its steps share.
class Sampler {
 public:
  Sampler(Device& device, const std::function<Status()>& work, const SamplingOptions& options,
          const std::function<bool(double)>& keepGoing)
      : device_(device), work_(work), options_(options), keepGoing_(keepGoing) {}

  Result<Sampling> run() {
    MUSTER_CHECK_OK(warmUp());
    MUSTER_CHECK_OK(sample());
    keepStandstills();
    return sampling_;
  }

 private:
  Status warmUp();
  Status sample();
  void keepStandstills();
  Result<double> timeBatch();
  Status report(double fraction);
  void fitBatch(double secondsPerPiece);
  [[nodiscard]] bool enough(double elapsed) const;
  [[nodiscard]] double samplingFraction(double elapsed) const;
  void add(double seconds);

  Device& device_;
  const std::function<Status()>& work_;
  const SamplingOptions& options_;
  const std::function<bool(double)>& keepGoing_;
  Sampling sampling_;
  std::vector<Batch> settling_;  ///< of the warm-up, from the first plateau on
  double shown_ = 0;             ///< largest fraction reported, so progress never runs backwards
  double mean_ = 0;              ///< Welford's running mean
  double squares_ = 0;           ///< and sum of squared deviations
};

/// Seconds that one piece took, as the mean over a batch.
Result<double> Sampler::timeBatch() {
  MUSTER_TRY(double seconds, device_.time([&]() -> Status {
    for (size_t i = 0; i < sampling_.batch; ++i) MUSTER_CHECK_OK(work_());
    return {};
  }));
  if (!std::isfinite(seconds) || seconds <= 0)
    return Error{ErrorCode::kCorrupt,
                 "the device's clock reports that " + std::to_string(sampling_.batch) + " repetitions took " +
                     std::to_string(seconds) + " s; expected a positive time",
                 device_.info().id};
  return seconds / static_cast<double>(sampling_.batch);
}

Status Sampler::report(double fraction) {
  shown_ = std::clamp(fraction, shown_, 1.0);
  if (keepGoing_(shown_)) return {};
  return Error{ErrorCode::kTimeout, "sampling was cancelled", device_.info().id};
}

void Sampler::fitBatch(double secondsPerPiece) {
  // Longer samples where maxSamples would else end before minTime has passed.
  const double sampleTime = std::max(
      options_.sampleTime, options_.minTime / static_cast<double>(std::max<size_t>(options_.maxSamples, 1)));
  const double wanted = std::ceil(sampleTime / secondsPerPiece);
  sampling_.batch = static_cast<size_t>(std::clamp(wanted, 1.0, static_cast<double>(kMaxBatch)));
}

bool steady(const std::deque<double>& window) {
  if (window.size() < kPlateauWindow) return false;
  const auto [low, high] = std::minmax_element(window.begin(), window.end());
  return *high - *low <= kPlateauSpread * *high;
}

/// Ends on a plateau after warmupMin, or at warmupMax without one. The first piece pays for lazy set-up, so
/// the batch is fitted anew after each.
Status Sampler::warmUp() {
  const double start = device_.now();
  std::deque<double> window;
  for (size_t i = 0; i < kMaxWarmupBatches; ++i) {
    MUSTER_CHECK_OK(report(kWarmupShare * sampling_.warmup / std::max(options_.warmupMax, 1e-9)));
    const size_t pieces = sampling_.batch;
    MUSTER_TRY(double seconds, timeBatch());
    if (options_.check && options_.checkWarmup) MUSTER_CHECK_OK(options_.check());
    fitBatch(seconds);
    window.push_back(seconds);
    if (window.size() > kPlateauWindow) window.pop_front();
    sampling_.warmup = device_.now() - start;
    sampling_.plateau = steady(window);
    if (sampling_.plateau || !settling_.empty()) settling_.push_back({pieces, seconds});
    if (sampling_.warmup >= options_.warmupMax) break;
    if (sampling_.plateau && sampling_.warmup >= options_.warmupMin) break;
  }
  return {};
}

/// A rate may swing while it settles; what falls far below the samples is a fault, and becomes samples of the
/// same work.
void Sampler::keepStandstills() {
  const double longest = medianOf(sampling_.seconds) / kSettlingRate;
  size_t pieces = 0;
  double took = 0;
  for (const Batch& batch : settling_) {
    if (batch.seconds <= longest) continue;
    pieces += batch.pieces;
    took += batch.seconds * static_cast<double>(batch.pieces);
  }
  const size_t samples = (pieces + sampling_.batch / 2) / sampling_.batch;
  if (samples == 0) return;
  sampling_.seconds.insert(sampling_.seconds.begin(), samples, took / static_cast<double>(pieces));
}

void Sampler::add(double seconds) {
  sampling_.seconds.push_back(seconds);
  const auto n = static_cast<double>(sampling_.seconds.size());
  const double delta = seconds - mean_;
  mean_ += delta / n;
  squares_ += delta * (seconds - mean_);
  sampling_.relativeError =
      n < 2 ? std::numeric_limits<double>::infinity() : std::sqrt(squares_ / (n - 1) / n) / mean_;
}

bool Sampler::enough(double elapsed) const {
  const size_t n = sampling_.seconds.size();
  if (n >= options_.maxSamples) return true;
  if (n < kFewestSamples) return false;
  if (elapsed >= options_.maxTime) return true;
  return n >= options_.minSamples && elapsed >= options_.minTime &&
         sampling_.relativeError <= options_.targetError;
}

/// The nearer of the two ends: the error reached after minTime, or maxTime.
double Sampler::samplingFraction(double elapsed) const {
  const double byTime = elapsed / std::max(options_.maxTime, 1e-9);
  const double byError = std::min(elapsed / std::max(options_.minTime, 1e-9),
                                  options_.targetError / std::max(sampling_.relativeError, 1e-12));
  return kWarmupShare + (1 - kWarmupShare) * std::max(byTime, byError);
}

Status Sampler::sample() {
  const double start = device_.now();
  double elapsed = 0;
  while (!enough(elapsed)) {
    MUSTER_CHECK_OK(report(sampling_.seconds.empty() ? kWarmupShare : samplingFraction(elapsed)));
    MUSTER_TRY(double seconds, timeBatch());
    add(seconds);
    if (options_.check) MUSTER_CHECK_OK(options_.check());
    elapsed = device_.now() - start;
  }
  return {};
}

}  // namespace

Result<Sampling> sampleWork(Device& device, const std::function<Status()>& work,
                            const SamplingOptions& options, const std::function<bool(double)>& keepGoing) {
  return Sampler(device, work, options, keepGoing).run();
}

}  // namespace muster
