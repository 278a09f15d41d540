// SPDX-License-Identifier: Apache-2.0
// See sample_catalog.h.
#include "tests/runner/plan/sample_catalog.h"

#include <cstdio>
#include <cstdlib>

namespace muster::testing {
namespace {

constexpr const char* kCompute = R"({"tests": [
  {"name": "gemm", "backends": ["host", "cuda", "sim"], "scopes": ["device"],
   "params": [
     {"name": "size", "type": "int", "default": 2048, "min": 16, "max": 65536},
     {"name": "dtype", "type": "string", "default": "f32", "one_of": ["f32", "bf16", "fp8_e4m3"]},
     {"name": "min_time", "type": "quantity", "unit": "s", "default": "2s", "min": "0s", "max": "1h"},
     {"name": "correctness", "type": "bool", "default": true},
     {"name": "scale", "type": "float", "default": 1.0, "min": 0.5, "max": 2}],
   "metrics": [
     {"name": "gemm_throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype", "size"],
      "peak": "flops.{dtype}"},
     {"name": "gemm_wrong_elements", "unit": "count", "direction": "lower", "labels": ["dtype", "min_time"]},
     {"name": "gemm_time", "unit": "s", "direction": "lower", "remedy": "Check clocks"},
     {"name": "gemm_algorithm", "unit": "text"}]},
  {"name": "cluster_gemm", "backends": ["sim"], "scopes": ["node", "cluster"]}]})";

constexpr const char* kMemory = R"({"tests": [
  {"name": "bandwidth", "backends": ["host", "sim"], "scopes": ["device", "node"],
   "params": [
     {"name": "bytes", "type": "quantity", "unit": "B", "default": "1 GiB", "min": "4 KiB", "max": "1 TiB"},
     {"name": "ops", "type": "list", "items": "string", "default": ["copy"], "one_of": ["copy", "triad", "read"]}],
   "metrics": [
     {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op", "bytes"]},
     {"name": "temperature", "unit": "degC", "direction": "none"}]}]})";

constexpr const char* kEnv = R"({"tests": [
  {"name": "health", "backends": ["host", "cuda", "sim"], "scopes": ["node", "device"], "ranks": 1,
   "metrics": [
     {"name": "clock_source", "unit": "text"},
     {"name": "in_container", "unit": "bool"},
     {"name": "load", "unit": "ratio", "direction": "lower"}]}]})";

void add(Catalog& catalog, const std::string& name, const char* describe) {
  const auto json = parseJson(describe);
  auto spec = json.ok() ? pluginSpecFromDescribe(name, *json) : Result<PluginSpec>(json.error());
  if (!spec.ok()) {
    std::fprintf(stderr, "the sample catalogue is wrong: %s\n", spec.error().text().c_str());
    std::abort();
  }
  catalog.plugins[name] = std::move(*spec);
}

}  // namespace

Catalog sampleCatalog() {
  Catalog catalog;
  add(catalog, "compute", kCompute);
  add(catalog, "memory", kMemory);
  add(catalog, "env", kEnv);
  catalog.refused["broken.so"] = {ErrorCode::kProtocol, "it was built for ABI 9, expected 1",
                                  "/opt/broken.so"};
  return catalog;
}

}  // namespace muster::testing
