// SPDX-License-Identifier: Apache-2.0
// What the compute plugin offers: JSON as plugins/abi/README.md describes it, without the parameters.
#pragma once

#include "plugins/compute/params.h"

namespace muster::compute {

inline constexpr const char* kGemmTest = R"json({
  "name": "gemm",
  "summary": "Matrix multiplication: sustained rate, correctness against a high-precision reference, bitwise repeatability",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "metrics": [
    {"name": "gemm_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "size"],
     "peak": "flops.{dtype}", "series": "runs", "summary": "rate of each sample; 2 m n k operations per run (integer ones for i8)",
     "remedy": "Check clocks, power cap and throttle reasons (nvidia-smi -q -d PERFORMANCE,CLOCK,POWER), then cooling; if only this GPU is slow, swap its position, then replace it"
},
    {"name": "gemm_wrong_elements", "unit": "count", "direction": "lower", "labels": ["dtype", "size"],
     "summary": "checked elements outside the error bound of their type, including NaN",
     "standing": {"max": 0, "source": "round-off bound of Higham and Mary 2019, see kernels/checks/reference.h",
                  "remedy": "The device computes wrong results: take it out of service and test its memory and cooling"}},
    {"name": "gemm_repeat_mismatches", "unit": "count", "direction": "lower", "labels": ["dtype", "size"],
     "summary": "elements that differ between runs on the same input",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible between runs: silent data corruption; take the device out of service"}},
    {"name": "gemm_worst_error", "unit": "ratio", "direction": "lower", "labels": ["dtype", "size"], "informational": true,
     "summary": "largest error, as a share of the size of a typical element"},
    {"name": "gemm_error_bound", "unit": "ratio", "labels": ["dtype", "size"], "informational": true,
     "summary": "upper bound of gemm_worst_error"},
    {"name": "gemm_implementation", "unit": "text", "labels": ["dtype", "size"], "informational": true,
     "summary": "library, version, kernel and threads used"},
    {"name": "gemm_warmup", "unit": "s", "labels": ["dtype", "size"], "informational": true,
     "summary": "duration of the warm-up"},
    {"name": "gemm_steady", "unit": "bool", "labels": ["dtype", "size"], "informational": true,
     "summary": "whether the warm-up reached a steady rate"},
    {"name": "gemm_relative_error", "unit": "ratio", "direction": "lower", "labels": ["dtype", "size"], "informational": true,
     "summary": "standard error of the rate's mean"},
    {"name": "gemm_first_fault", "unit": "text", "labels": ["dtype", "size"], "informational": true, "optional": true,
     "summary": "position of the first wrong element"}
  ]
})json";

inline constexpr const char* kBestTest = R"json({
  "name": "best",
  "summary": "Matrix multiplication: best rate over many shapes and algorithms. Informational; limits apply to one shape and algorithm, see gemm",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "metrics": [
    {"name": "best_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype"], "peak": "flops.{dtype}", "informational": true,
     "summary": "samples of the fastest shape (highest median)"},
    {"name": "best_shape", "unit": "text", "labels": ["dtype"], "informational": true, "summary": "fastest shape, MxNxK"},
    {"name": "best_implementation", "unit": "text", "labels": ["dtype"], "informational": true,
     "summary": "library, version and algorithm used"},
    {"name": "shape_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "shape"], "informational": true,
     "summary": "samples of each shape with its fastest algorithm",
     "remedy": "Check clocks, power cap and throttle reasons (nvidia-smi -q -d PERFORMANCE,CLOCK,POWER), then cooling; if only this GPU is slow, swap its position, then replace it"},
    {"name": "best_wrong_elements", "unit": "count", "direction": "lower", "labels": ["dtype"],
     "summary": "checked elements of all shapes outside the error bound of their type, including NaN",
     "standing": {"max": 0, "source": "round-off bound of Higham and Mary 2019, see kernels/checks/reference.h",
                  "remedy": "The device computes wrong results: take it out of service and test its memory and cooling"}},
    {"name": "best_first_fault", "unit": "text", "labels": ["dtype"], "informational": true, "optional": true,
     "summary": "position of the first wrong element"}
  ]
})json";

inline constexpr const char* kSustainedTest = R"json({
  "name": "sustained",
  "summary": "Stress test: multiplies for a given time, compares results bitwise and tracks the rate as the device heats up. In scope cluster, all devices of all nodes start together",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device", "cluster"],
  "metrics": [
    {"name": "sustained_start_spread", "unit": "s", "direction": "lower", "informational": true, "optional": true,
     "summary": "scope cluster: delay between the start of this rank and the last one (upper bound)"},
    {"name": "sustained_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "size"],
     "peak": "flops.{dtype}", "series": "windows", "window": "window",
     "summary": "rate of each window: idle time counts, comparisons do not",
     "remedy": "Check clocks, power cap and throttle reasons (nvidia-smi -q -d PERFORMANCE,CLOCK,POWER), then cooling; if only this GPU is slow, swap its position, then replace it"},
    {"name": "sustained_duty", "unit": "ratio", "direction": "higher", "labels": ["dtype", "size"],
     "summary": "share of the elapsed time in which the device had work",
     "standing": {"min": 0.99, "severity": "warn", "source": "Muster: batches of 30 ms are queued ahead; only the device's own pauses and a stalled host are left",
                  "remedy": "The device waited for the host: see what else runs on its CPUs (top, steal time) and run again"}},
    {"name": "sustained_drift", "unit": "ratio", "direction": "lower", "labels": ["dtype", "size"], "informational": true,
     "summary": "rate loss from the first to the last window"},
    {"name": "sustained_wrong_elements", "unit": "count", "direction": "lower", "labels": ["dtype", "size"],
     "summary": "elements of the first and last result outside the error bound, including NaN",
     "standing": {"max": 0, "source": "round-off bound of Higham and Mary 2019, see kernels/checks/reference.h",
                  "remedy": "The device computes wrong results: take it out of service and test its memory and cooling"}},
    {"name": "sustained_mismatches", "unit": "count", "direction": "lower", "labels": ["dtype", "size"],
     "summary": "elements in all compared results that differ from the first result",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible between runs: silent data corruption; take the device out of service"}},
    {"name": "sustained_comparisons", "unit": "count", "direction": "higher", "labels": ["dtype", "size"],
     "informational": true, "summary": "number of compared results"},
    {"name": "sustained_memory", "unit": "B", "labels": ["dtype", "size"], "informational": true,
     "summary": "memory of the operands and results used in turn"},
    {"name": "sustained_implementation", "unit": "text", "labels": ["dtype", "size"], "informational": true,
     "summary": "library, version, kernel and threads used"},
    {"name": "sustained_first_fault", "unit": "text", "labels": ["dtype", "size"], "informational": true, "optional": true,
     "summary": "time and position of the first wrong element"}
  ]
})json";

inline std::string describe() {
  return sdk::describe({{kGemmTest, sdk::describeParams<GemmParams>()},
                        {kBestTest, sdk::describeParams<BestParams>()},
                        {kSustainedTest, sdk::describeParams<SustainedParams>()}});
}

}  // namespace muster::compute
