// SPDX-License-Identifier: Apache-2.0
// Test "sustained": keeps the device multiplying for a given time and watches rate and results.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

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
    0.1;                             ///< seconds of the device: formatting takes longer than a simulated run
constexpr double kBatchTime = 0.03;  ///< seconds: covers what keeps the host from queueing more
constexpr double kMostProducts = 4096;
constexpr double kFetchPause = 1;  ///< seconds of the device between looks at what comparisons found

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

/// Work that was queued together and may still run.
struct Batch {
  /// The part of it that is no multiplication.
  struct Comparison {
    std::unique_ptr<Mark> begin, end;
  };
  std::unique_ptr<Mark> begin, end;
  uint64_t products = 0;
  std::vector<Comparison> comparisons;
};

/// The burn: its clock, its windows and its checks. While one batch runs the next one is queued, so that the
/// device is never without work; what comparisons find is added up there and fetched seldom, as that lets the
/// queue run empty. All times but the deadline are the device's own, between marks in its work.
class Burn {
 public:
  static Result<Burn> make(const Bench& bench, const SustainedParams& params, Works& works) {
    MUSTER_TRY(std::unique_ptr<Tally> tally, bench.device.tally());
    return Burn(bench, params, works, std::move(tally));
  }

  Status run() {
    MUSTER_CHECK_OK(queueBatch());
    while (!queued_.empty()) {
      MUSTER_CHECK_OK(report());
      if (elapsed() < params_.duration) MUSTER_CHECK_OK(queueBatch());
      MUSTER_CHECK_OK(finishBatch());
    }
    if (!compared_) MUSTER_CHECK_OK(works_[current_].compare(*tally_));
    MUSTER_CHECK_OK(fetch());
    closeLast();
    return {};
  }

  /// Rate of each window: what the device did not multiply in, but for comparisons, counts. What is left at
  /// the end, if shorter than half a window, belongs to the last one.
  [[nodiscard]] const std::vector<double>& rates() const { return rates_; }
  /// Share of the time from the first batch's begin to the last one's end in which a batch ran.
  [[nodiscard]] double duty() const { return busy_ / done_; }

 private:
  struct Window {
    double seconds = 0;  ///< comparisons left out
    uint64_t products = 0;
  };

  Burn(const Bench& bench, const SustainedParams& params, Works& works, std::unique_ptr<Tally> tally)
      : bench_(bench),
        params_(params),
        works_(works),
        tally_(std::move(tally)),
        batchTime_(std::min(kBatchTime, params.window)),
        start_(bench.device.now()) {}

  /// The host's clock, or the time of the work that is done, should that clock stand still: a burn always
  /// ends.
  [[nodiscard]] double elapsed() const { return std::max(bench_.device.now() - start_, done_); }

  Status report() {
    if (bench_.host.cancelled())
      return Error{ErrorCode::kTimeout, "the stress test was cancelled", bench_.device.info().id};
    if (elapsed() < reportAt_) return {};
    reportAt_ = elapsed() + kProgressPause;
    const double share = params_.duration > 0 ? elapsed() / params_.duration : 0;
    bench_.host.progress(
        share, fmt::format("stress test: {} results compared, {} elements wrong", comparisons_, mismatches_));
    return {};
  }

  Status queueBatch() {
    const double sinceComparison = elapsed() - comparedAt_;
    Batch batch;
    batch.products = products_;
    MUSTER_TRY(batch.begin, bench_.device.mark());
    for (uint64_t i = 1; i <= batch.products; ++i) {
      current_ = (current_ + 1) % works_.size();
      MUSTER_CHECK_OK(works_[current_].run());
      const bool last = i == batch.products;
      compared_ = params_.checkInterval <= 0 || (last && sinceComparison >= params_.checkInterval);
      if (compared_) MUSTER_CHECK_OK(queueComparison(batch));
    }
    MUSTER_TRY(batch.end, bench_.device.mark());
    queued_.push_back(std::move(batch));
    return {};
  }

  Status queueComparison(Batch& batch) {
    comparedAt_ = elapsed();
    Batch::Comparison comparison;
    MUSTER_TRY(comparison.begin, bench_.device.mark());
    MUSTER_CHECK_OK(works_[current_].compare(*tally_));
    MUSTER_TRY(comparison.end, bench_.device.mark());
    batch.comparisons.push_back(std::move(comparison));
    return {};
  }

  /// Waits for the oldest batch.
  Status finishBatch() {
    Batch batch = std::move(queued_.front());
    queued_.pop_front();
    MUSTER_TRY(const double seconds, bench_.device.seconds(*batch.begin, *batch.end));
    if (!(seconds > 0))
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the device's clock reports that {} multiplications took {} s", batch.products,
                               seconds),
                   bench_.device.info().id};
    double idle = 0;
    if (lastEnd_ != nullptr) {
      MUSTER_TRY(idle, bench_.device.seconds(*lastEnd_, *batch.begin));
    }
    double comparing = 0;
    for (const Batch::Comparison& one : batch.comparisons) {
      MUSTER_TRY(const double took, bench_.device.seconds(*one.begin, *one.end));
      comparing += took;
    }
    return book(batch, seconds, idle, comparing);
  }

  Status book(Batch& batch, double seconds, double idle, double comparing) {
    lastEnd_ = std::move(batch.end);
    busy_ += seconds;
    done_ += idle + seconds;
    comparisons_ += batch.comparisons.size();
    window_.seconds += idle + seconds - comparing;
    window_.products += batch.products;
    const double wanted = batchTime_ / seconds * static_cast<double>(batch.products);
    products_ = static_cast<uint64_t>(std::clamp(wanted, 1.0, kMostProducts));
    if (done_ - windowStart_ >= params_.window) closeWindow();
    return done_ >= fetchAt_ ? fetch() : Status();
  }

  Status fetch() {
    fetchAt_ = done_ + kFetchPause;
    MUSTER_TRY(const Mismatch found, tally_->read());
    mismatches_ = found.wrong;
    works_.front().blame(found);
    return {};
  }

  void closeWindow() {
    rates_.push_back(params_.spec.flops() * static_cast<double>(window_.products) / window_.seconds);
    last_ = window_;
    window_ = {};
    windowStart_ = done_;
  }

  void closeLast() {
    if (window_.products == 0) return;
    const bool tooShort = done_ - windowStart_ < params_.window / 2;
    if (tooShort && !rates_.empty()) {
      rates_.pop_back();
      window_.seconds += last_.seconds;
      window_.products += last_.products;
    }
    closeWindow();
  }

  const Bench& bench_;
  const SustainedParams& params_;
  Works& works_;
  std::unique_ptr<Tally> tally_;  ///< of all works
  std::deque<Batch> queued_;
  double batchTime_;
  uint64_t products_ = 1;  ///< of the next batch
  size_t current_ = 0;
  double start_;
  double reportAt_ = 0;
  std::unique_ptr<Mark> lastEnd_;  ///< of the last batch that is done
  double busy_ = 0;                ///< seconds of batches that are done
  double done_ = 0;                ///< the same with what lay between them
  Window window_, last_;           ///< the open one, and the one that was closed last
  double windowStart_ = 0;
  double comparedAt_ = 0;
  bool compared_ = true;  ///< a comparison of the last result was queued
  double fetchAt_ = kFetchPause;
  uint64_t comparisons_ = 0, mismatches_ = 0;  ///< for reports of progress
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

Status report(const Bench& bench, const SustainedParams& params, const Works& works, const Burn& burn) {
  const Faults faults = faultsOf(works);
  const std::vector<double>& rates = burn.rates();
  const double drift = std::max(0.0, 1 - rates.back() / rates.front());
  const double now = bench.device.now();
  const auto count = [](uint64_t n) { return std::vector<double>{static_cast<double>(n)}; };
  MUSTER_CHECK_OK(bench.host.measurement("sustained_throughput", "FLOP/s", rates, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("sustained_drift", "ratio", {drift}, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("sustained_duty", "ratio", {burn.duty()}, {}, now));
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
  MUSTER_TRY(Burn burn, Burn::make(bench, params, works));
  MUSTER_CHECK_OK(burn.run());
  for (Multiplication& work : works) MUSTER_CHECK_OK(work.checkReference());
  return report(bench, params, works, burn);
}

}  // namespace muster::compute
