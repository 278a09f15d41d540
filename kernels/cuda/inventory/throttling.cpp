// SPDX-License-Identifier: Apache-2.0
// Reads throttle times: counters by policy and by cause, event reasons.
#include "kernels/cuda/inventory/throttling.h"

#include <algorithm>

namespace muster::cuda {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr unsigned long long kThermal = nvmlClocksThrottleReasonHwThermalSlowdown;
constexpr unsigned long long kSoftware = nvmlClocksEventReasonSwThermalSlowdown;
constexpr unsigned long long kBrake = nvmlClocksThrottleReasonHwPowerBrakeSlowdown;

/// The call tells its unit in every version of NVML; it goes with CUDA 14, and the field stays.
Answer<double> policyTime(const Nvml& nvml, nvmlDevice_t device, int policy, unsigned field) {
  const auto time = ask<nvmlViolationTime_t>(nvml->nvmlDeviceGetViolationStatus, device, policy);
  if (!time.absent()) return {time.code, static_cast<double>(time.value.violationTime) * kNanosecond};
  Answer<double> answer = readFields(nvml, device, {{field}}).front();
  answer.value *= kNanosecond;
  return answer;
}

Answer<unsigned long long> eventReasons(const Nvml& nvml, nvmlDevice_t device) {
  const auto reasons = ask<unsigned long long>(nvml->nvmlDeviceGetCurrentClocksEventReasons, device);
  return reasons.code == NVML_ERROR_FUNCTION_NOT_FOUND
             ? ask<unsigned long long>(nvml->nvmlDeviceGetCurrentClocksThrottleReasons, device)
             : reasons;
}

}  // namespace

/// The policy's time is of both causes. Where no other counter tells them apart, what it grew by is the
/// software's if that alone slowed the GPU down, by the samples before and after.
Throttling::Times Throttling::countedTimes(const Nvml& nvml, nvmlDevice_t device, Seen& seen,
                                           bool bySoftwareAlone) {
  const auto policy = policyTime(nvml, device, NVML_PERF_POLICY_THERMAL, NVML_FI_DEV_PERF_POLICY_THERMAL);
  if (policy.ok()) {
    if (bySoftwareAlone) seen.policyOfSoftware += std::max(0.0, policy.value - seen.policy);
    seen.policy = policy.value;
  }
  Times times{policy, policy, {NVML_ERROR_NOT_SUPPORTED, 0}};
  times.thermal.value -= seen.policyOfSoftware;
  times.software.value = seen.policyOfSoftware;
  const auto ids = slowdownFields(nvml.driverBranch());
  if (!ids) return times;
  auto fields = readFields(nvml, device, {{ids->swThermal}, {ids->hwThermal}, {ids->hwPowerBrake}});
  for (auto& field : fields) field.value *= kNanosecond;
  times.brake = fields[2];
  const Answer<double>& software = fields[0];
  const Answer<double>& hardware = fields[1];
  // A source that failed is worth more than one that did not: half of the times would look healthy.
  for (const auto& one : {policy, software, hardware})
    if (!one.ok() && !one.absent()) return {one, one, times.brake};
  if (!software.ok() || !hardware.ok()) return times;
  times.thermal = hardware;
  times.software = {NVML_SUCCESS, std::max(software.value, policy.value - hardware.value)};
  return times;
}

void Throttling::read(GpuCollector& c, double at) {
  const Nvml& nvml = c.nvml();
  c.number(reading::kThrottlePowerCap, "s",
           policyTime(nvml, c.device(), NVML_PERF_POLICY_POWER, NVML_FI_DEV_PERF_POLICY_POWER));
  const auto reasons = eventReasons(nvml, c.device());
  const unsigned long long now = reasons.ok() ? reasons.value : 0;
  const auto [entry, first] = seen_.try_emplace(c.device());
  Seen& seen = entry->second;
  const bool bySoftware = (now & kSoftware) != 0;
  const bool byHardware = (now & (kThermal | kBrake | nvmlClocksThrottleReasonHwSlowdown)) != 0;
  const bool bySoftwareAlone =
      !first && (bySoftware || seen.slowedBySoftware) && !byHardware && !seen.slowedByHardware;
  seen.slowedBySoftware = bySoftware;
  seen.slowedByHardware = byHardware;
  const Times counted = countedTimes(nvml, c.device(), seen, bySoftwareAlone);
  const double since = first ? 0 : std::max(0.0, at - seen.at);
  seen.at = at;
  const auto put = [&](const char* name, Cause& cause, const Answer<double>& counter, bool holds) {
    if (first && counter.ok()) cause.counterAtFirst = counter.value;
    if (holds) cause.sampled += since;
    const bool sampled = reasons.ok() && (counter.ok() || counter.absent());
    if (!sampled) return c.number(name, "s", counter);
    c.put(name, "s",
          counter.ok() ? std::max(counter.value, cause.counterAtFirst + cause.sampled) : cause.sampled);
  };
  put(reading::kThrottleThermal, seen.thermal, counted.thermal, (now & kThermal) != 0);
  put(reading::kThrottleSoftware, seen.software, counted.software, bySoftware);
  put(reading::kThrottlePowerBrake, seen.brake, counted.brake, (now & kBrake) != 0);
  if (!c.note("clock_capped", reasons.code, reasons.absent())) return;
  const bool other = (now & nvmlClocksThrottleReasonHwSlowdown) != 0 && (now & (kThermal | kBrake)) == 0;
  put(reading::kThrottleHardware, seen.hardware, {NVML_ERROR_NOT_SUPPORTED, 0}, other);
  c.put("clock_capped", "bool", (now & nvmlClocksEventReasonApplicationsClocksSetting) != 0 ? 1 : 0);
}

}  // namespace muster::cuda
