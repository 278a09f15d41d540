// SPDX-License-Identifier: Apache-2.0
// Theoretical peaks of a GPU: multiprocessors x operations a clock x highest clock.
#include "kernels/cuda/inventory/gpu_peaks.h"

#include <array>

namespace muster::cuda {
namespace {

/// Dense operations that one multiprocessor finishes in a clock (a fused multiply-add is two), from NVIDIA's
/// architecture white papers; 0: the type is missing, or not known. `cores` is what NVML counts as cores of
/// one.
struct Architecture {
  int capability;
  unsigned cores;
  double f64, f32, tf32, half, fp8, i8;
  uint64_t cacheBytes;  ///< second-level cache of the largest chip
  /// Share of the highest clock at which the tensor cores' peaks are stated: H100's white paper has 1830 of
  /// 1980 MHz; of B200 it follows from the datasheet (2250 TFLOP/s of 148 multiprocessors, 1965 MHz).
  double tensorClock = 1;
};
constexpr double kHopperTensorClock = 1830.0 / 1980, kBlackwellTensorClock = 1856.0 / 1965;
// 8.6: A40's datasheet (149.7 TFLOP/s of 84 multiprocessors at 1740 MHz); 10.3: HGX B300's datasheet; 12.0:
// the white paper of RTX PRO 6000 (503.8 TFLOP/s of 188 multiprocessors at 2617 MHz). GeForce has half
// of 8.6's and 12.0's tensor rates with sums in f32.
constexpr std::array<Architecture, 8> kArchitectures{{
    {75, 64, 4, 128, 0, 1024, 0, 2048, 6u << 20},
    {80, 64, 128, 128, 1024, 2048, 0, 4096, 40u << 20},
    {86, 128, 4, 256, 512, 1024, 0, 2048, 6u << 20},
    {89, 128, 4, 256, 512, 1024, 2048, 2048, 96u << 20},
    {90, 128, 256, 256, 2048, 4096, 8192, 8192, 50u << 20, kHopperTensorClock},
    {100, 128, 128, 256, 4096, 8192, 16384, 16384, 126u << 20, kBlackwellTensorClock},
    {103, 128, 4, 256, 4096, 8192, 16384, 0, 126u << 20, kBlackwellTensorClock},
    {120, 128, 4, 256, 512, 1024, 2048, 2048, 128u << 20},
}};

void addRates(const Architecture& architecture, double multiprocessors, double clock, DeviceInfo& info) {
  const auto add = [&](const char* name, double operations, double share) {
    if (operations > 0) info.peaks[name] = operations * multiprocessors * clock * share;
  };
  const double tensor = architecture.tensorClock;
  add("flops.f64", architecture.f64, 1);
  add("flops.f32", architecture.f32, 1);
  add("flops.tf32", architecture.tf32, tensor);
  add("flops.f16", architecture.half, tensor);
  // Turing multiplies f16 alone.
  if (architecture.capability >= 80) add("flops.bf16", architecture.half, tensor);
  add("flops.fp8_e4m3", architecture.fp8, tensor);
  add("flops.fp8_e5m2", architecture.fp8, tensor);
  add("flops.i8", architecture.i8, tensor);
}

}  // namespace

void addPeaks(const Nvml& nvml, nvmlDevice_t device, DeviceInfo& info) {
  int major = 0, minor = 0;
  if (nvml->nvmlDeviceGetCudaComputeCapability(device, &major, &minor) != NVML_SUCCESS) return;
  info.facts["compute_capability"] = std::to_string(major) + "." + std::to_string(minor);
  const auto memoryClock = ask<unsigned>(nvml->nvmlDeviceGetMaxClockInfo, device, int{NVML_CLOCK_MEM});
  const auto bus = ask<unsigned>(nvml->nvmlDeviceGetMemoryBusWidth, device);
  // Both edges of the clock carry data; GDDR6X and HBM alike are told at the rate for which that holds.
  if (memoryClock.ok() && bus.ok() && memoryClock.value > 0 && bus.value > 0)
    info.peaks["memory_bandwidth"] = 2.0 * memoryClock.value * 1e6 * bus.value / 8;
  const auto cores = ask<unsigned>(nvml->nvmlDeviceGetNumGpuCores, device);
  const auto clock = ask<unsigned>(nvml->nvmlDeviceGetMaxClockInfo, device, int{NVML_CLOCK_SM});
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.capability != major * 10 + minor) continue;
    info.lastLevelCacheBytes = architecture.cacheBytes;
    if (cores.ok() && clock.ok())
      addRates(architecture, static_cast<double>(cores.value / architecture.cores), clock.value * 1e6, info);
  }
}

}  // namespace muster::cuda
