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
    {"name": "size", "type": "int", "default": 2048, "min": 1, "max": 131072, "summary": "default for m, n and k"},
    {"name": "m", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "rows of A and C; 0: size"},
    {"name": "n", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "columns of B and C; 0: size"},
    {"name": "k", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "columns of A, rows of B; 0: size"},
    {"name": "dtype", "type": "string", "default": "f32", "summary": "type of A and B; skipped if the device does not support it",
     "one_of": ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"]},
    {"name": "algorithm", "type": "string", "default": "default",
     "summary": "an implementation of the backend (host: onednn, openblas), or default: its fastest"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "5s", "min": "0s", "max": "1h",
     "summary": "longest warm-up; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "2s", "min": "0s", "max": "24h",
     "summary": "minimum sampling time"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "10s", "min": "0s", "max": "24h",
     "summary": "longest sampling time if the rate has not converged"},
    {"name": "reference_samples", "type": "int", "default": 256, "min": 1, "max": 1000000,
     "summary": "elements verified in higher precision"},
    {"name": "comparisons", "type": "int", "default": 4, "min": 1, "max": 1000000,
     "summary": "results compared bitwise with the first one"}
  ],
  "metrics": [
    {"name": "gemm_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "size"],
     "peak": "flops.{dtype}", "series": "runs", "summary": "rate of each sample; 2 m n k operations a run (integer ones for i8)"
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
},
{
  "name": "best",
  "summary": "Matrix multiplication: best rate over many shapes and algorithms. Informational; limits apply to one shape and algorithm, see gemm",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "params": [
    {"name": "shapes", "type": "list", "items": "string", "summary": "MxNxK each",
     "default": ["2048x2048x2048", "4096x4096x4096", "6144x6144x6144", "8192x8192x8192", "10240x10240x10240", "12288x12288x12288", "16384x16384x16384", "16384x8192x4096", "4096x16384x8192", "6144x17920x2816"]},
    {"name": "dtype", "type": "string", "default": "f32", "summary": "type of A and B; skipped if the device does not support it",
     "one_of": ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"]},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "500ms", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each shape"},
    {"name": "time", "type": "quantity", "unit": "s", "default": "500ms", "min": "0s", "max": "1h",
     "summary": "sampling time per shape"},
    {"name": "reference_samples", "type": "int", "default": 64, "min": 1, "max": 1000000,
     "summary": "elements per shape verified in higher precision"}
  ],
  "metrics": [
    {"name": "best_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype"], "peak": "flops.{dtype}", "informational": true,
     "summary": "samples of the fastest shape (highest median)"},
    {"name": "best_shape", "unit": "text", "labels": ["dtype"], "informational": true, "summary": "fastest shape, MxNxK"},
    {"name": "best_implementation", "unit": "text", "labels": ["dtype"], "informational": true,
     "summary": "library, version and algorithm used"},
    {"name": "shape_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "shape"], "informational": true,
     "summary": "samples of each shape with its fastest algorithm"},
    {"name": "best_wrong_elements", "unit": "count", "direction": "lower", "labels": ["dtype"],
     "summary": "checked elements of all shapes outside the error bound of their type, including NaN",
     "standing": {"max": 0, "source": "round-off bound of Higham and Mary 2019, see kernels/checks/reference.h",
                  "remedy": "The device computes wrong results: take it out of service and test its memory and cooling"}},
    {"name": "best_first_fault", "unit": "text", "labels": ["dtype"], "informational": true, "optional": true,
     "summary": "position of the first wrong element"}
  ]
},
{
  "name": "sustained",
  "summary": "Stress test: multiplies for a given time, compares results bitwise and tracks the rate as the device heats up. In scope cluster, all devices of all nodes start together",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device", "cluster"],
  "params": [
    {"name": "duration", "type": "quantity", "unit": "s", "default": "1m", "min": "0s", "max": "7d",
     "summary": "duration of the stress test"},
    {"name": "window", "type": "quantity", "unit": "s", "default": "5s", "min": "1ms", "max": "1h",
     "summary": "duration of one rate sample"},
    {"name": "check_interval", "type": "quantity", "unit": "s", "default": "0s", "min": "0s", "max": "1h",
     "summary": "interval between compared results; 0s: compare every result"},
    {"name": "size", "type": "int", "default": 4096, "min": 1, "max": 131072, "summary": "default for m, n and k"},
    {"name": "m", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "rows of A and C; 0: size"},
    {"name": "n", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "columns of B and C; 0: size"},
    {"name": "k", "type": "int", "default": 0, "min": 0, "max": 131072, "summary": "columns of A, rows of B; 0: size"},
    {"name": "dtype", "type": "string", "default": "f32", "summary": "type of A and B; skipped if the device does not support it",
     "one_of": ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"]},
    {"name": "algorithm", "type": "string", "default": "default", "summary": "an implementation of the backend"},
    {"name": "memory", "type": "float", "default": 0, "min": 0, "max": 0.98,
     "summary": "share of free memory to fill with operands, used in turn; 0: operands of one multiplication"},
    {"name": "start_timeout", "type": "quantity", "unit": "s", "default": "1m", "min": "1s", "max": "1h",
     "summary": "scope cluster: timeout for all ranks to become ready"},
    {"name": "reference_samples", "type": "int", "default": 256, "min": 1, "max": 1000000,
     "summary": "elements verified in higher precision"}
  ],
  "metrics": [
    {"name": "sustained_start_spread", "unit": "s", "direction": "lower", "informational": true, "optional": true,
     "summary": "scope cluster: delay between the start of this rank and the last one (upper bound)"},
    {"name": "sustained_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "size"],
     "peak": "flops.{dtype}", "series": "windows", "window": "window", "summary": "rate of each window"},
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
}
]})json";

}  // namespace muster::compute
