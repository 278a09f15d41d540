// SPDX-License-Identifier: Apache-2.0
// The parameters of this plugin's tests.
#pragma once

#include <algorithm>

#include "kernels/checks/timing.h"
#include "kernels/interfaces/ops.h"
#include "plugins/sdk/params.h"

namespace muster::compute {

inline void declareDtype(sdk::ParamTable& param, Dtype& dtype) {
  param("dtype", dtype, "f32", {"f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"},
        dtypeFromName, "type of A and B; skipped if the device does not support it");
}

/// What is multiplied.
struct ShapeParams {
  GemmSpec spec;
  int64_t size = 0;

  void declareShape(sdk::ParamTable& param, int64_t standardSize) {
    param("size", size, standardSize, {1, 131072},
          "rows and columns of the matrices; m, n and k override it");
    param("m", spec.m, 0, {0, 131072}, "rows of A and C; 0: size");
    param("n", spec.n, 0, {0, 131072}, "columns of B and C; 0: size");
    param("k", spec.k, 0, {0, 131072}, "columns of A, rows of B; 0: size");
    declareDtype(param, spec.dtype);
  }
  Status complete() {
    for (int64_t* dimension : {&spec.m, &spec.n, &spec.k})
      if (*dimension == 0) *dimension = size;
    return {};
  }
};

struct GemmParams : ShapeParams {
  SamplingOptions sampling;
  int referenceSamples = 0;
  int comparisons = 0;

  void declare(sdk::ParamTable& param) {
    declareShape(param, 2048);
    param("algorithm", spec.algorithm, "default",
          "implementation of the backend (host: onednn, openblas; cuda: best); default: its choice");
    param("warmup", sampling.warmupMax, "s", "5s", {"0s", "1h"},
          "longest warm-up; it ends early once the rate is steady");
    param("min_time", sampling.minTime, "s", "2s", {"0s", "24h"}, "minimum sampling time");
    param("max_time", sampling.maxTime, "s", "10s", {"0s", "24h"},
          "longest sampling time if the rate has not converged");
    param("reference_samples", referenceSamples, 256, {1, 1000000},
          "number of elements verified in higher precision");
    param("comparisons", comparisons, 4, {1, 1000000}, "results compared bitwise with the first one");
  }
  Status complete() {
    sampling.warmupMin = std::min(sampling.warmupMin, sampling.warmupMax);
    sampling.maxTime = std::max(sampling.maxTime, sampling.minTime);
    return ShapeParams::complete();
  }
};

struct BestParams {
  std::vector<std::string> shapes;  ///< "8192x8192x4096"
  Dtype dtype = Dtype::kF32;
  SamplingOptions sampling;
  int referenceSamples = 0;

  void declare(sdk::ParamTable& param) {
    param("shapes", shapes,
          {"2048x2048x2048", "4096x4096x4096", "6144x6144x6144", "8192x8192x8192", "10240x10240x10240",
           "12288x12288x12288", "16384x16384x16384", "16384x8192x4096", "4096x16384x8192", "6144x17920x2816"},
          "shapes to try, MxNxK each");
    declareDtype(param, dtype);
    param("warmup", sampling.warmupMax, "s", "500ms", {"0s", "1h"}, "longest warm-up of each shape");
    param("time", sampling.minTime, "s", "500ms", {"0s", "1h"}, "minimum sampling time per shape");
    param("reference_samples", referenceSamples, 64, {1, 1000000},
          "elements per shape verified in higher precision");
  }
  Status complete() {
    sampling.warmupMin = std::min(sampling.warmupMin, sampling.warmupMax);
    sampling.maxTime = sampling.minTime;
    return {};
  }
};

struct SustainedParams : ShapeParams {
  double duration = 0;
  double window = 0;
  double checkInterval = 0;
  double startTimeout = 0;
  double memory = 0;  ///< share of what is free
  int referenceSamples = 0;

  void declare(sdk::ParamTable& param) {
    param("duration", duration, "s", "1m", {"0s", "7d"}, "duration of the stress test");
    param("window", window, "s", "5s", {"1ms", "1h"}, "duration of one rate sample");
    param("check_interval", checkInterval, "s", "0s", {"0s", "1h"},
          "interval between compared results; 0s: compare every result");
    declareShape(param, 4096);
    param("algorithm", spec.algorithm, "default", "implementation of the backend; default: its choice");
    param("memory", memory, 0, {0, 0.98},
          "share of free memory to fill with operands, used in turn; 0: operands of one multiplication");
    param("start_timeout", startTimeout, "s", "1m", {"1s", "1h"},
          "scope cluster: timeout for all ranks to become ready");
    param("reference_samples", referenceSamples, 256, {1, 1000000},
          "number of elements verified in higher precision");
  }
};

}  // namespace muster::compute
