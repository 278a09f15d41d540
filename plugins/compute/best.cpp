// SPDX-License-Identifier: Apache-2.0
// Test "best": the fastest that the device multiplies, over many shapes and algorithms.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kernels/checks/timing.h"
#include "plugins/compute/multiplication.h"
#include "plugins/compute/tests.h"
#include "runner/core/statistics.h"
#include "runner/core/text.h"

namespace muster::compute {
namespace {

constexpr const char* kBest =
    "best";  ///< what a backend calls the best of many algorithms, where it has that

struct Params {
  std::vector<GemmSpec> shapes;
  SamplingOptions sampling;
  int referenceSamples = 0;
};

/// "8192x8192x4096".
Result<GemmSpec> readShape(const std::string& text, Dtype dtype) {
  GemmSpec spec;
  spec.dtype = dtype;
  const std::vector<std::string> parts = split(text, 'x');
  bool read = parts.size() == 3;
  int64_t* const dimensions[] = {&spec.m, &spec.n, &spec.k};
  for (size_t i = 0; read && i < 3; ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const auto [stop, problem] = std::from_chars(parts[i].data(), end, *dimensions[i]);
    read = problem == std::errc() && stop == end && *dimensions[i] > 0;
  }
  if (read) return spec;
  return Error{ErrorCode::kUsage,
               "\"" + printable(text, 64) + "\" is not a shape, expected MxNxK as in 8192x8192x4096",
               "params.shapes"};
}

Result<Params> readParams(const Bench& bench, const Json& json) {
  Params params;
  std::vector<std::string> shapes;
  std::string name;
  double time = 0;
  JsonReader reader(json, "params");
  reader.read("shapes", shapes);
  reader.read("dtype", name);
  reader.read("warmup", params.sampling.warmupMax);
  reader.read("time", time);
  reader.read("reference_samples", params.referenceSamples);
  MUSTER_CHECK_OK(reader.status());
  params.sampling.warmupMin = std::min(params.sampling.warmupMin, params.sampling.warmupMax);
  params.sampling.minTime = params.sampling.maxTime = time;
  MUSTER_TRY(Dtype dtype, dtypeFromName(name));
  const std::vector<std::string> algorithms = bench.ops.gemmAlgorithms(dtype);
  const bool searches = std::count(algorithms.begin(), algorithms.end(), kBest) > 0;
  for (const std::string& text : shapes) {
    MUSTER_TRY(GemmSpec spec, readShape(text, dtype));
    if (searches) spec.algorithm = kBest;
    params.shapes.push_back(spec);
  }
  if (params.shapes.empty()) return Error{ErrorCode::kUsage, "there is no shape to run", "params.shapes"};
  return params;
}

std::string shapeName(const GemmSpec& spec) {
  return fmt::format("{}x{}x{}", spec.m, spec.n, spec.k);
}

/// One shape, as far as it was measured.
struct Shape {
  GemmSpec spec;
  std::vector<double> rates;
  std::string implementation;
  Faults faults;

  [[nodiscard]] double median() const { return medianOf(rates); }
};

Result<Shape> measure(const Bench& bench, const Params& params, size_t index, uint64_t seed) {
  Shape shape;
  shape.spec = params.shapes[index];
  const std::string text = "multiplying " + shapeName(shape.spec);
  const auto keepGoing = [&](double share) {
    bench.host.progress((static_cast<double>(index) + share) / static_cast<double>(params.shapes.size()),
                        text);
    return !bench.host.cancelled();
  };
  keepGoing(0);
  MUSTER_TRY(Multiplication work, Multiplication::prepare(bench.host, bench.device, bench.ops, shape.spec,
                                                          params.referenceSamples, seed));
  MUSTER_TRY(Sampling sampling, sampleWork(
                                    bench.device, [&] { return work.run(); }, params.sampling, keepGoing));
  for (double seconds : sampling.seconds) shape.rates.push_back(shape.spec.flops() / seconds);
  MUSTER_CHECK_OK(work.compare());
  shape.implementation = work.implementation();
  shape.faults = work.faults();
  return shape;
}

Status report(const Bench& bench, const std::vector<Shape>& shapes) {
  const sdk::Host& host = bench.host;
  const double now = bench.device.now();
  uint64_t wrong = 0;
  std::string fault;
  for (const Shape& shape : shapes) {
    wrong += shape.faults.wrong + shape.faults.mismatches;
    if (fault.empty()) fault = shape.faults.first;
    MUSTER_CHECK_OK(
        host.measurement("shape_throughput", "FLOP/s", shape.rates, {{"shape", shapeName(shape.spec)}}, now));
  }
  const Shape& best = *std::max_element(
      shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) { return a.median() < b.median(); });
  MUSTER_CHECK_OK(host.measurement("best_throughput", "FLOP/s", best.rates, {}, now));
  MUSTER_CHECK_OK(host.fact("best_shape", shapeName(best.spec)));
  MUSTER_CHECK_OK(host.fact("best_implementation", best.implementation));
  MUSTER_CHECK_OK(host.measurement("best_wrong_elements", "count", {static_cast<double>(wrong)}, {}, now));
  return fault.empty() ? Status() : host.fact("best_first_fault", fault);
}

}  // namespace

Status runBest(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(Params params, readParams(bench, json));
  std::vector<Shape> shapes;
  for (size_t i = 0; i < params.shapes.size(); ++i) {
    MUSTER_TRY(Shape shape, measure(bench, params, i, seed));
    shapes.push_back(std::move(shape));
  }
  return report(bench, shapes);
}

}  // namespace muster::compute
