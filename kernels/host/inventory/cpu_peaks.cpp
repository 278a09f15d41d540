// SPDX-License-Identifier: Apache-2.0
// Theoretical peaks of CPU cores, from their instruction set and clock.
#include "kernels/host/inventory/cpu_peaks.h"

#include "runner/core/text.h"

namespace muster {

namespace {

double f32PerCycle(const CpuModel& model) {
  constexpr int kZen4Family = 25;
  const bool halves = model.vendor == "AuthenticAMD" && model.family == kZen4Family;
  if (model.has("avx512f")) return halves ? 32 : 64;
  if (model.has("avx2") && model.has("fma")) return 32;
  if (model.has("avx")) return 16;
  if (model.has("sse2")) return 8;
  if (model.has("asimd")) return 16;
  return 0;
}

}  // namespace

std::map<std::string, double> operationsPerCycle(const CpuModel& model) {
  const double f32 = f32PerCycle(model);
  if (f32 == 0) return {};
  std::map<std::string, double> rates{{"f32", f32}, {"f64", f32 / 2}};
  if (model.has("avx512_fp16")) rates["f16"] = 2 * f32;
  if (model.has("avx512_bf16")) rates["bf16"] = 2 * f32;
  if (model.has("avx512_vnni") || model.has("avx_vnni")) rates["i8"] = 4 * f32;
  if (model.has("amx_bf16")) rates["bf16"] = 1024;
  if (model.has("amx_int8")) rates["i8"] = 2048;
  return rates;
}

std::map<std::string, double> cpuPeaks(const CpuModel& model, int cores, double clockHz) {
  std::map<std::string, double> peaks;
  for (const auto& [dtype, rate] : operationsPerCycle(model))
    peaks["flops." + dtype] = rate * cores * clockHz;
  return peaks;
}

std::string isaText(const CpuModel& model) {
  std::vector<std::string> found;
  for (const char* flag : {"sse2", "asimd", "sve", "avx", "avx2", "fma", "avx_vnni", "avx512f", "avx512_vnni",
                           "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8"})
    if (model.has(flag)) found.emplace_back(flag);
  return join(found, " ");
}

}  // namespace muster
