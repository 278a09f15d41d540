// SPDX-License-Identifier: Apache-2.0
// Test "sustained": keeps the device multiplying for a given time and watches rate and results.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/checks/gemm_reference.h"
#include "plugins/compute/multiplication.h"
#include "plugins/compute/params.h"
#include "plugins/compute/tests.h"
#include "plugins/sdk/group_store.h"

namespace muster::compute {
namespace {

/// Multiplications that are burned in turn, each with operands of its own.
using Works = std::vector<Multiplication>;

constexpr double kMostWorks = 4096;
constexpr double kProgressPause =
    0.1;  ///< seconds of the device: formatting takes longer than a simulated run

/// As many as fill the memory that the plan gives away, one at least. What one takes is seen, workspaces of
/// libraries included, by what is free before and after it.
Result<Works> prepareWorks(const Bench& bench, const SustainedParams& params, uint64_t seed) {
  Works works;
  const auto add = [&]() -> Status {
    MUSTER_TRY(Multiplication work, Multiplication::prepare(bench.host, bench.device, bench.ops, params.spec,
                                                            params.referenceSamples, seed + works.size()));
    works.push_back(std::move(work));
    return {};
  };
  MUSTER_TRY(uint64_t before, bench.device.freeBytes());
  MUSTER_CHECK_OK(add());
  if (params.memory <= 0) return works;
  MUSTER_TRY(uint64_t after, bench.device.freeBytes());
  const double taken = std::max(static_cast<double>(gemmOperandBytes(params.spec)),
                                static_cast<double>(before) - static_cast<double>(after));
  const double wanted = std::min(static_cast<double>(before) * params.memory / taken, kMostWorks);
  while (static_cast<double>(works.size() + 1) <= wanted) {
    if (bench.host.cancelled())
      return Error{ErrorCode::kTimeout, "the stress test was cancelled", bench.device.info().id};
    bench.host.progress(0, fmt::format("filling memory, {} of {:.0f} multiplications", works.size(), wanted));
    MUSTER_CHECK_OK(add());
  }
  return works;
}

/// What all of them found.
Faults faultsOf(const Works& works) {
  Faults all;
  for (const Multiplication& work : works) {
    const Faults& one = work.faults();
    all.wrong += one.wrong;
    all.mismatches += one.mismatches;
    all.comparisons += one.comparisons;
    if (one.worst.worst >= all.worst.worst) all.worst = one.worst;
    if (all.first.empty()) all.first = one.first;
  }
  return all;
}

/// The burn: its clock, its windows and its checks.
class Burn {
 public:
  Burn(const Bench& bench, const SustainedParams& params, Works& works)
      : bench_(bench), params_(params), works_(works), start_(bench.device.now()), found_(faultsOf(works)) {}

  Status run() {
    do {
      MUSTER_CHECK_OK(report());
      MUSTER_CHECK_OK(multiply());
      if (elapsed() - checkedAt_ >= params_.checkInterval) MUSTER_CHECK_OK(check());
    } while (elapsed() < params_.duration);
    if (!checked_) MUSTER_CHECK_OK(check());
    closeLast();
    return {};
  }

  /// Rate of each window. What is left at the end, if shorter than half a window, belongs to the last one.
  [[nodiscard]] const std::vector<double>& rates() const { return rates_; }

 private:
  /// The device's clock, or the work it measured, should the clock stand still: a burn always ends.
  [[nodiscard]] double elapsed() const { return std::max(bench_.device.now() - start_, busy_); }

  Status report() {
    if (bench_.host.cancelled())
      return Error{ErrorCode::kTimeout, "the stress test was cancelled", bench_.device.info().id};
    if (elapsed() < reportAt_) return {};
    reportAt_ = elapsed() + kProgressPause;
    const double share = params_.duration > 0 ? elapsed() / params_.duration : 0;
    bench_.host.progress(share, fmt::format("stress test: {} results compared, {} elements wrong",
                                            found_.comparisons, found_.mismatches));
    return {};
  }

  Status multiply() {
    current_ = (current_ + 1) % works_.size();
    MUSTER_TRY(double seconds, bench_.device.time([this] { return works_[current_].run(); }));
    if (!(seconds > 0))
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the device's clock reports that a run took {} s", seconds),
                   bench_.device.info().id};
    checked_ = false;
    busy_ += seconds;
    windowBusy_ += seconds;
    ++windowRuns_;
    if (elapsed() - windowStart_ >= params_.window) closeWindow();
    return {};
  }

  Status check() {
    checkedAt_ = elapsed();
    checked_ = true;
    Multiplication& work = works_[current_];
    const uint64_t comparisons = work.faults().comparisons;
    const uint64_t mismatches = work.faults().mismatches;
    MUSTER_CHECK_OK(work.compare());
    found_.comparisons += work.faults().comparisons - comparisons;
    found_.mismatches += work.faults().mismatches - mismatches;
    return {};
  }

  void closeWindow() {
    rates_.push_back(params_.spec.flops() * static_cast<double>(windowRuns_) / windowBusy_);
    lastBusy_ = windowBusy_;
    lastRuns_ = windowRuns_;
    windowStart_ = elapsed();
    windowBusy_ = 0;
    windowRuns_ = 0;
  }

  void closeLast() {
    if (windowRuns_ == 0) return;
    const bool tooShort = elapsed() - windowStart_ < params_.window / 2;
    if (tooShort && !rates_.empty()) {
      rates_.pop_back();
      windowBusy_ += lastBusy_;
      windowRuns_ += lastRuns_;
    }
    closeWindow();
  }

  const Bench& bench_;
  const SustainedParams& params_;
  Works& works_;
  size_t current_ = 0;
  double start_;
  Faults found_;  ///< comparisons and mismatches of all works, kept up to date
  double reportAt_ = 0;
  double busy_ = 0;  ///< seconds of multiplication
  double windowStart_ = 0;
  double windowBusy_ = 0;
  uint64_t windowRuns_ = 0;
  double lastBusy_ = 0;  ///< of the window that was closed last
  uint64_t lastRuns_ = 0;
  double checkedAt_ = 0;
  bool checked_ = true;  ///< the last result was compared
  std::vector<double> rates_;
};

/// Begins together with all other ranks of the group, for load on power and cooling that independent burns
/// cannot make. Nodes share no clock, so the spread is bounded without one: nobody leaves the second barrier
/// before the last rank has left the first and come to it, hence the time between the two is at least what
/// that rank was behind.
Status startTogether(const Bench& bench, const SustainedParams& params) {
  if (!bench.together) return {};
  double spread = 0;  // simulated ranks all begin at the same virtual moment
  if (!bench.virtualTime) {
    sdk::HostStore store(bench.host);
    bench.host.progress(0, "waiting for all ranks to start");
    MUSTER_CHECK_OK(store.barrier("ready", params.startTimeout));
    const double left = bench.device.now();
    MUSTER_CHECK_OK(store.barrier("begin", params.startTimeout));
    spread = bench.device.now() - left;
  }
  return bench.host.measurement("sustained_start_spread", "s", {spread}, {}, bench.device.now());
}

Status report(const Bench& bench, const SustainedParams& params, const Works& works,
              const std::vector<double>& rates) {
  const Faults faults = faultsOf(works);
  const double drift = std::max(0.0, 1 - rates.back() / rates.front());
  const double now = bench.device.now();
  const auto count = [](uint64_t n) { return std::vector<double>{static_cast<double>(n)}; };
  MUSTER_CHECK_OK(bench.host.measurement("sustained_throughput", "FLOP/s", rates, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("sustained_drift", "ratio", {drift}, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("sustained_wrong_elements", "count", count(faults.wrong), {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("sustained_mismatches", "count", count(faults.mismatches), {}, now));
  MUSTER_CHECK_OK(
      bench.host.measurement("sustained_comparisons", "count", count(faults.comparisons), {}, now));
  const double bytes = static_cast<double>(gemmOperandBytes(params.spec)) * static_cast<double>(works.size());
  MUSTER_CHECK_OK(bench.host.measurement("sustained_memory", "B", {bytes}, {}, now));
  MUSTER_CHECK_OK(bench.host.fact("sustained_implementation", works.front().implementation()));
  return faults.first.empty() ? Status() : bench.host.fact("sustained_first_fault", faults.first);
}

}  // namespace

Status runSustained(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(const SustainedParams params, sdk::readParams<SustainedParams>(json));
  MUSTER_TRY(Works works, prepareWorks(bench, params, seed));
  MUSTER_CHECK_OK(startTogether(bench, params));
  Burn burn(bench, params, works);
  MUSTER_CHECK_OK(burn.run());
  for (Multiplication& work : works) MUSTER_CHECK_OK(work.checkReference());
  return report(bench, params, works, burn.rates());
}

}  // namespace muster::compute
