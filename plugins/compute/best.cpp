// SPDX-License-Identifier: Apache-2.0
// Test "best": the fastest that the device multiplies, over many shapes and algorithms.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kernels/checks/timing.h"
#include "plugins/compute/multiplication.h"
#include "plugins/compute/params.h"
#include "plugins/compute/tests.h"
#include "runner/core/statistics.h"
#include "runner/core/text.h"

namespace muster::compute {
namespace {

constexpr const char* kBest =
    "best";  ///< what a backend calls the best of many algorithms, where it has that

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

/// All shapes of the plan, each by the best algorithm where the backend searches for it.
Result<std::vector<GemmSpec>> shapesOf(const Bench& bench, const BestParams& params) {
  const std::vector<std::string> algorithms = bench.ops.gemmAlgorithms(params.dtype);
  const bool searches = std::count(algorithms.begin(), algorithms.end(), kBest) > 0;
  std::vector<GemmSpec> shapes;
  for (const std::string& text : params.shapes) {
    MUSTER_TRY(GemmSpec spec, readShape(text, params.dtype));
    if (searches) spec.algorithm = kBest;
    shapes.push_back(spec);
  }
  if (shapes.empty()) return Error{ErrorCode::kUsage, "there is no shape to run", "params.shapes"};
  return shapes;
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

Result<Shape> measure(const Bench& bench, const BestParams& params, const std::vector<GemmSpec>& specs,
                      size_t index, uint64_t seed) {
  Shape shape;
  shape.spec = specs[index];
  const std::string text = "multiplying " + shapeName(shape.spec);
  const auto keepGoing = [&](double share) {
    bench.host.progress((static_cast<double>(index) + share) / static_cast<double>(specs.size()), text);
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
  MUSTER_TRY(const BestParams params, sdk::readParams<BestParams>(json));
  MUSTER_TRY(const std::vector<GemmSpec> specs, shapesOf(bench, params));
  std::vector<Shape> shapes;
  for (size_t i = 0; i < specs.size(); ++i) {
    MUSTER_TRY(Shape shape, measure(bench, params, specs, i, seed));
    shapes.push_back(std::move(shape));
  }
  return report(bench, shapes);
}

}  // namespace muster::compute
