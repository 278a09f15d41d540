// SPDX-License-Identifier: Apache-2.0
// Columns and keys of nccl-tests 2.17. Times in us, bandwidths in GB/s of 1e9 bytes.
#include "plugins/collective/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::collective {
namespace {

constexpr int kFormatVersion = 3;
constexpr double kGiga = 1e9;
constexpr double kMicro = 1e6;

/// Types by NCCL's names.
const char* ncclType(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return "double";
    case Dtype::kF32:
    case Dtype::kTf32:
      return "float";
    case Dtype::kF16:
      return "half";
    case Dtype::kBf16:
      return "bfloat16";
    case Dtype::kFp8E4m3:
      return "fp8_e4m3";
    case Dtype::kFp8E5m2:
      return "fp8_e5m2";
    case Dtype::kI8:
      return "int8";
    case Dtype::kFp4:
      return "fp4";
  }
  return "unknown";
}

std::string redopOf(const CollectiveSpec& spec) {
  return reduces(spec.op) ? reduceOpName(spec.reduce) : "none";
}

int rootOf(const CollectiveSpec& spec) {
  return hasRoot(spec.op) ? spec.root : -1;
}

std::string columns(const SizeResult& size, bool inPlace, int ranks) {
  const Timing* timing = size.timing(inPlace);
  if (timing == nullptr) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", "N/A", "N/A", "N/A", "N/A");
  const double seconds = timing->mean();
  const double micros = seconds * kMicro;
  const std::string time = micros >= 10000 ? fmt::format("{:7.0f}", micros)
                           : micros >= 100 ? fmt::format("{:7.1f}", micros)
                                           : fmt::format("{:7.2f}", micros);
  return fmt::format("  {}  {:6.2f}  {:6.2f}  {:5.0f}", time, size.algorithmBandwidth(seconds) / kGiga,
                     size.busBandwidth(seconds, ranks) / kGiga, timing->mostWrong);
}

std::string row(const SizeResult& size, int ranks) {
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}{}{}\n", size.bytes, size.spec.count,
                     ncclType(size.spec.dtype), redopOf(size.spec), rootOf(size.spec),
                     columns(size, false, ranks), columns(size, true, ranks));
}

Json placementJson(const SizeResult& size, bool inPlace, int ranks) {
  const Timing* timing = size.timing(inPlace);
  if (timing == nullptr) return nullptr;
  const double seconds = timing->mean();
  return Json{{"time", seconds * kMicro},
              {"alg_bw", size.algorithmBandwidth(seconds) / kGiga},
              {"bus_bw", size.busBandwidth(seconds, ranks) / kGiga},
              {"nwrong", timing->mostWrong}};
}

std::string commandName(const CollectiveSpec& spec) {
  return std::string(collectiveOpName(spec.op)) + "_perf";
}

}  // namespace

double SweepResult::averageBusBandwidth() const {
  double sum = 0;
  int count = 0;
  for (const SizeResult& size : sizes)
    for (const Timing& timing : size.timings) {
      sum += size.busBandwidth(timing.mean(), ranks) / kGiga;
      ++count;
    }
  return count == 0 ? 0 : sum / count;
}

int SweepResult::outOfBounds() const {
  int wrong = 0;
  for (const SizeResult& size : sizes)
    wrong += static_cast<int>(std::count_if(size.timings.begin(), size.timings.end(),
                                            [](const Timing& timing) { return timing.mostWrong > 0; }));
  return wrong;
}

std::string ncclTestsTable(const SweepResult& result) {
  const Params& p = result.params;
  std::string text = fmt::format("# {} by muster collective.sweep\n", commandName(p.spec));
  text += fmt::format(
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}(factor) warmup iters: {} iters: {} "
      "agg iters: 1 validation: 1 graph: 0\n#\n",
      p.sizes.front(), p.sizes.back(), p.sizes.size() > 1 ? fmt::format("{}", p.sizes[1] / p.sizes[0]) : "1",
      p.warmup, p.iterations);
  text += fmt::format("# Using {} ranks on {}, {}\n#\n", result.ranks, result.device, result.implementation);
  text += fmt::format("#{:>57}{:>32}{:>32}\n", "", "out-of-place         ", "in-place          ");
  const std::string half = "     time   algbw   busbw  #wrong";
  const std::string units = "     (us)  (GB/s)  (GB/s)        ";
  text += fmt::format("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", "size", "count", "type", "redop", "root",
                      half, half);
  text += fmt::format("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", "(B)", "(elements)", "", "", "", units,
                      units);
  for (const SizeResult& size : result.sizes) text += row(size, result.ranks);
  text += fmt::format("# Out of bounds values : {} {}\n", result.outOfBounds(),
                      result.outOfBounds() == 0 ? "OK" : "FAILED");
  text += fmt::format("# Avg bus bandwidth    : {:.6g}\n#\n", result.averageBusBandwidth());
  return text;
}

Json ncclTestsJson(const SweepResult& result) {
  Json devices = Json::array();
  for (int rank = 0; rank < result.ranks; ++rank)
    devices.push_back({{"rank", rank}, {"group", 0}, {"device", rank == 0 ? result.device : ""}});
  Json rows = Json::array();
  for (const SizeResult& size : result.sizes)
    rows.push_back({{"size", size.bytes},
                    {"count", size.spec.count},
                    {"type", ncclType(size.spec.dtype)},
                    {"redop", redopOf(size.spec)},
                    {"root", rootOf(size.spec)},
                    {"out_of_place", placementJson(size, false, result.ranks)},
                    {"in_place", placementJson(size, true, result.ranks)}});
  const Params& p = result.params;
  return Json{{"version", kFormatVersion},
              {"args", Json::array({commandName(p.spec)})},
              {"config",
               {{"nthreads", 1},
                {"ngpus", 1},
                {"minimum_bytes", p.sizes.front()},
                {"maximum_bytes", p.sizes.back()},
                {"warmup_iters", p.warmup},
                {"iterations", p.iterations},
                {"aggregated_iterations", 1},
                {"validation", 1},
                {"graph", p.graph ? 1 : 0},
                {"implementation", result.implementation},
                {"devices", devices}}},
              {"results", rows},
              {"out_of_bounds", {{"count", result.outOfBounds()}, {"okay", result.outOfBounds() == 0}}},
              {"average_bus_bandwidth", {{"bandwidth", result.averageBusBandwidth()}, {"okay", true}}}};
}

}  // namespace muster::collective
