// SPDX-License-Identifier: Apache-2.0
// What the compute plugin offers, as plugins/abi/README.md describes it.
#pragma once

namespace muster::compute {

inline constexpr const char* kDescribe = R"json({"tests": [
{
  "name": "gemm",
  "summary": "Matrix multiplication: sustained rate, correctness against a high-precision reference, bitwise repeatability",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "params": [
    {"name": "size", "type": "int", "default": 2048, "min": 1, "max": 131072, "summary": "M = N = K where these are 0"},
    {"name": "m", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "rows of A and C; 0: size"},
    {"name": "n", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "columns of B and C; 0: size"},
    {"name": "k", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "columns of A, rows of B; 0: size"},
    {"name": "dtype", "type": "string", "default": "f32", "summary": "type of A and B; skipped where the device has it not",
     "one_of": ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"]},
    {"name": "algorithm", "type": "string", "default": "default",
     "summary": "an implementation of the backend (host: onednn, openblas), or default: its fastest"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "5s", "min": "0s", "max": "1h",
     "summary": "longest warm-up; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "2s", "min": "0s", "max": "24h",
     "summary": "time to sample at least"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "10s", "min": "0s", "max": "24h",
     "summary": "and at most, where the rate stays uncertain"},
    {"name": "reference_samples", "type": "int", "default": 256, "min": 1, "max": 1000000,
     "summary": "elements that are computed again in higher precision"},
    {"name": "comparisons", "type": "int", "default": 4, "min": 1, "max": 1000000,
     "summary": "results that are compared with the first one, bit by bit"}
  ],
  "metrics": [
    {"name": "gemm_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "size"],
     "peak": "flops.{dtype}", "series": "runs", "summary": "rate of each sample; 2 m n k operations a run (integer ones for i8)"
},
    {"name": "gemm_wrong_elements", "unit": "count", "direction": "lower", "labels": ["dtype", "size"],
     "summary": "checked elements beyond the error bound of their type, NaN included",
     "standing": {"max": 0, "source": "round-off bound of Higham and Mary 2019, see kernels/checks/reference.h",
                  "remedy": "The device computes wrong results: take it out of service and test its memory and cooling"}},
    {"name": "gemm_repeat_mismatches", "unit": "count", "direction": "lower", "labels": ["dtype", "size"],
     "summary": "elements that differ between runs on the same input",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "The device computes differently from run to run: silent data corruption; take it out of service"}},
    {"name": "gemm_worst_error", "unit": "ratio", "direction": "lower", "labels": ["dtype", "size"], "informational": true,
     "summary": "largest error, as a share of the size of a typical element"},
    {"name": "gemm_error_bound", "unit": "ratio", "labels": ["dtype", "size"], "informational": true,
     "summary": "what gemm_worst_error may be"},
    {"name": "gemm_implementation", "unit": "text", "labels": ["dtype", "size"], "informational": true,
     "summary": "library, version, kernel and threads that did the work"},
    {"name": "gemm_warmup", "unit": "s", "labels": ["dtype", "size"], "informational": true,
     "summary": "how long the warm-up took"},
    {"name": "gemm_steady", "unit": "bool", "labels": ["dtype", "size"], "informational": true,
     "summary": "whether the warm-up reached a steady rate"},
    {"name": "gemm_relative_error", "unit": "ratio", "direction": "lower", "labels": ["dtype", "size"], "informational": true,
     "summary": "standard error of the rate's mean"},
    {"name": "gemm_first_fault", "unit": "text", "labels": ["dtype", "size"], "informational": true, "optional": true,
     "summary": "where the first wrong element lies"}
  ]
},
{
  "name": "best",
  "summary": "Matrix multiplication, the best of many shapes and of the library's many algorithms: what the device can do at most. Reported, for no peer to compare with: a figure to judge belongs to one shape and one algorithm, see gemm",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "params": [
    {"name": "shapes", "type": "list", "items": "string", "summary": "MxNxK each",
     "default": ["2048x2048x2048", "4096x4096x4096", "6144x6144x6144", "8192x8192x8192", "10240x10240x10240", "12288x12288x12288", "16384x16384x16384", "16384x8192x4096", "4096x16384x8192", "6144x17920x2816"]},
    {"name": "dtype", "type": "string", "default": "f32", "summary": "type of A and B; skipped where the device has it not",
     "one_of": ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"]},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "500ms", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each shape"},
    {"name": "time", "type": "quantity", "unit": "s", "default": "500ms", "min": "0s", "max": "1h",
     "summary": "time to sample each shape"},
    {"name": "reference_samples", "type": "int", "default": 64, "min": 1, "max": 1000000,
     "summary": "elements of each shape that are computed again in higher precision"}
  ],
  "metrics": [
    {"name": "best_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype"], "peak": "flops.{dtype}", "informational": true,
     "summary": "samples of the shape with the highest median rate"},
    {"name": "best_shape", "unit": "text", "labels": ["dtype"], "informational": true, "summary": "that shape, MxNxK"},
    {"name": "best_implementation", "unit": "text", "labels": ["dtype"], "informational": true,
     "summary": "library, version and algorithm that did it"},
    {"name": "shape_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "shape"], "informational": true,
     "summary": "samples of each shape, by the best algorithm for it"},
    {"name": "best_wrong_elements", "unit": "count", "direction": "lower", "labels": ["dtype"],
     "summary": "checked elements of all shapes beyond the error bound of their type, NaN included",
     "standing": {"max": 0, "source": "round-off bound of Higham and Mary 2019, see kernels/checks/reference.h",
                  "remedy": "The device computes wrong results: take it out of service and test its memory and cooling"}},
    {"name": "best_first_fault", "unit": "text", "labels": ["dtype"], "informational": true, "optional": true,
     "summary": "where the first wrong element lies"}
  ]
},
{
  "name": "sustained",
  "summary": "Burn: multiplies for a given time, compares results bit by bit, shows how the rate drifts with heat; in scope cluster every device of all nodes begins at once",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device", "cluster"],
  "params": [
    {"name": "duration", "type": "quantity", "unit": "s", "default": "1m", "min": "0s", "max": "7d",
     "summary": "how long to burn"},
    {"name": "window", "type": "quantity", "unit": "s", "default": "5s", "min": "1ms", "max": "1h",
     "summary": "time over which one sample of the rate is taken"},
    {"name": "check_interval", "type": "quantity", "unit": "s", "default": "0s", "min": "0s", "max": "1h",
     "summary": "time between results that are compared; 0s: each one is"},
    {"name": "size", "type": "int", "default": 4096, "min": 1, "max": 131072, "summary": "M = N = K where these are 0"},
    {"name": "m", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "rows of A and C; 0: size"},
    {"name": "n", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "columns of B and C; 0: size"},
    {"name": "k", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "columns of A, rows of B; 0: size"},
    {"name": "dtype", "type": "string", "default": "f32", "summary": "type of A and B; skipped where the device has it not",
     "one_of": ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"]},
    {"name": "algorithm", "type": "string", "default": "default", "summary": "an implementation of the backend"},
    {"name": "memory", "type": "float", "default": 0, "min": 0, "max": 0.98,
     "summary": "share of the free memory to fill with operands, which are burned in turn; 0: those of one multiplication"},
    {"name": "start_timeout", "type": "quantity", "unit": "s", "default": "1m", "min": "1s", "max": "1h",
     "summary": "scope cluster: how long to wait until every rank is ready to begin"},
    {"name": "reference_samples", "type": "int", "default": 256, "min": 1, "max": 1000000,
     "summary": "elements that are computed again in higher precision"}
  ],
  "metrics": [
    {"name": "sustained_start_spread", "unit": "s", "direction": "lower", "informational": true, "optional": true,
     "summary": "scope cluster: at most so long after this rank the last one began"},
    {"name": "sustained_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "size"],
     "peak": "flops.{dtype}", "series": "windows", "window": "window", "summary": "rate of each window while it multiplied"},
    {"name": "sustained_drift", "unit": "ratio", "direction": "lower", "labels": ["dtype", "size"], "informational": true,
     "summary": "share of the first window's rate that the last one lost"},
    {"name": "sustained_wrong_elements", "unit": "count", "direction": "lower", "labels": ["dtype", "size"],
     "summary": "elements of the first and the last result beyond the error bound, NaN included",
     "standing": {"max": 0, "source": "round-off bound of Higham and Mary 2019, see kernels/checks/reference.h",
                  "remedy": "The device computes wrong results: take it out of service and test its memory and cooling"}},
    {"name": "sustained_mismatches", "unit": "count", "direction": "lower", "labels": ["dtype", "size"],
     "summary": "elements of all compared results that differ from the first result",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "The device computes differently from run to run: silent data corruption; take it out of service"}},
    {"name": "sustained_comparisons", "unit": "count", "direction": "higher", "labels": ["dtype", "size"],
     "informational": true, "summary": "results that were compared"},
    {"name": "sustained_memory", "unit": "B", "labels": ["dtype", "size"], "informational": true,
     "summary": "operands and results that were burned in turn"},
    {"name": "sustained_implementation", "unit": "text", "labels": ["dtype", "size"], "informational": true,
     "summary": "library, version, kernel and threads that did the work"},
    {"name": "sustained_first_fault", "unit": "text", "labels": ["dtype", "size"], "informational": true, "optional": true,
     "summary": "when and where the first wrong element was seen"}
  ]
}
]})json";

}  // namespace muster::compute
