// SPDX-License-Identifier: Apache-2.0
// Test "gemm": speed and correctness of matrix multiplication.
#include <algorithm>
#include <limits>

#include "kernels/checks/timing.h"
#include "plugins/compute/multiplication.h"
#include "plugins/compute/params.h"
#include "plugins/compute/tests.h"

namespace muster::compute {
namespace {

/// Seconds until a GPU that starts to multiply has settled at its power limit: on an H100 at 700 W the first
/// swing of its power control, 17% deep, ended 0.9 s after the start, the later ones were half as deep
/// (measured, tests/gpu/results).
constexpr double kPowerSettles = 2;

/// Every sample's last result is compared with the first one: what goes wrong in between and heals again
/// shows.
Result<Sampling> sample(const Bench& bench, Multiplication& work, SamplingOptions options) {
  options.check = [&work] { return work.compare(); };
  options.checkWarmup = true;  // faults come where power rises
  if (bench.device.info().kind == "gpu") options.warmupMin = std::min(kPowerSettles, options.warmupMax);
  const std::string text = std::string("multiplying ") + dtypeName(work.spec().dtype);
  return sampleWork(
      bench.device, [&] { return work.run(); }, options,
      [&](double fraction) {
        bench.host.progress(fraction, text);
        return !bench.host.cancelled();
      });
}

/// Fresh results, after the sampled ones.
Status compareRepeats(Multiplication& work, int comparisons) {
  for (int i = 1; i < comparisons; ++i) {
    MUSTER_CHECK_OK(work.run());
    MUSTER_CHECK_OK(work.compare());
  }
  return {};
}

Status reportRate(const Bench& bench, const Multiplication& work, const Sampling& sampling) {
  std::vector<double> rates;
  for (double seconds : sampling.seconds) rates.push_back(work.spec().flops() / seconds);
  const double now = bench.device.now();
  MUSTER_CHECK_OK(bench.host.measurement("gemm_throughput", "FLOP/s", rates, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("gemm_warmup", "s", {sampling.warmup}, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("gemm_steady", "bool", {sampling.plateau ? 1.0 : 0.0}, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("gemm_relative_error", "ratio", {sampling.relativeError}, {}, now));
  return bench.host.fact("gemm_implementation", work.implementation());
}

/// A NaN among the results deviates infinitely; the largest number says so too, and can be stored.
double finite(double deviation) {
  return std::min(deviation, std::numeric_limits<double>::max());
}

Status reportFaults(const Bench& bench, const Faults& faults) {
  const double now = bench.device.now();
  const auto count = [](uint64_t n) { return std::vector<double>{static_cast<double>(n)}; };
  MUSTER_CHECK_OK(bench.host.measurement("gemm_wrong_elements", "count", count(faults.wrong), {}, now));
  MUSTER_CHECK_OK(
      bench.host.measurement("gemm_repeat_mismatches", "count", count(faults.mismatches), {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("gemm_worst_error", "ratio", {finite(faults.worst.worst)}, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("gemm_error_bound", "ratio", {faults.worst.bound}, {}, now));
  return faults.first.empty() ? Status() : bench.host.fact("gemm_first_fault", faults.first);
}

}  // namespace

Status runGemm(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(const GemmParams params, sdk::readParams<GemmParams>(json));
  MUSTER_TRY(Multiplication work, Multiplication::prepare(bench.host, bench.device, bench.ops, params.spec,
                                                          params.referenceSamples, seed));
  MUSTER_TRY(Sampling sampling, sample(bench, work, params.sampling));
  MUSTER_CHECK_OK(compareRepeats(work, params.comparisons));
  MUSTER_CHECK_OK(reportRate(bench, work, sampling));
  return reportFaults(bench, work.faults());
}

}  // namespace muster::compute
