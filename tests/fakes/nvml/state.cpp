// SPDX-License-Identifier: Apache-2.0
// The fake NVML: how a GPU fares.
#include "tests/fakes/nvml/answers.h"

namespace {

unsigned linksOf(nvmlDevice_t device) {
  return static_cast<unsigned>(scenario().number(indexOf(device), "nvlinks", 18));
}

bool linkIsDown(nvmlDevice_t device, unsigned link) {
  return scenario().number(indexOf(device), "nvlink_down", -1) == static_cast<double>(link);
}

/// From Hopper on, and by the headers that have the call.
bool tellsMargin(nvmlDevice_t device) {
  return header().fieldsEnd >= 269 && scenario().number(indexOf(device), "capability", 9) >= 9;
}

nvmlReturn_t fieldOf(nvmlDevice_t device, nvmlFieldValue_t& field) {
  const auto put = [&](const char* key, double otherwise) {
    field.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    return giveNumber(device, key, otherwise, &field.value.ullVal);
  };
  const auto putOfLink = [&](int link, const char* key) -> nvmlReturn_t {
    if (static_cast<int>(field.scopeId) == link) return put(key, 0);
    field.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field.value.uiVal = 0;
    return NVML_SUCCESS;
  };
  const bool blackwell = scenario().number(indexOf(device), "capability", 9) >= 10;
  const unsigned id = field.fieldId;
  if (id >= header().fieldsEnd) return NVML_ERROR_INVALID_ARGUMENT;
  if (const unsigned first = header().slowdowns; first != 0 && id >= first && id < first + 3)
    return put(id == first ? "thermal_ns" : id == first + 1 ? "hw_thermal_ns" : "power_brake_ns", 0);
  if (id >= kFirstMovingField && id < kEndOfMovingFields) return put("power_smoothing", 0);
  switch (id) {
    case 74:
      return put("power_cap_ns", 0);
    case 75:
      return put("thermal_violation_ns", scenario().number(indexOf(device), "thermal_ns", 0));
    case 194: {  // negative, and declared as unsigned
      field.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
      if (!tellsMargin(device)) return NVML_ERROR_NOT_SUPPORTED;
      field.value.uiVal = static_cast<unsigned>(-2);
      return NVML_SUCCESS;
    }
    case NVML_FI_DEV_MEMORY_TEMP:
      return put("memory_temperature", 45);
    case NVML_FI_DEV_NVLINK_LINK_COUNT:
      return put("nvlinks", 18);
    case NVML_FI_DEV_NVLINK_GET_SPEED:
    case NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON:
      return put("nvlink_speed", 26562);
    case 170:
      return scenario().text(indexOf(device), "c2c_links").empty() ? NVML_ERROR_NOT_SUPPORTED
                                                                   : put("c2c_links", 0);
    case 171:
      field.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
      field.value.uiVal =
          scenario().number(indexOf(device), "c2c_down", -1) == static_cast<double>(field.scopeId) ? 0 : 1;
      return NVML_SUCCESS;
    case 138:
      if (blackwell || scenario().text(indexOf(device), "nvlink_kib").empty())
        return NVML_ERROR_NOT_SUPPORTED;
      return put("nvlink_kib", 0);
    case 161:
      return blackwell ? NVML_ERROR_NOT_SUPPORTED : putOfLink(0, "nvlink_replays");
    case 162:
      return blackwell ? NVML_ERROR_NOT_SUPPORTED : putOfLink(1, "nvlink_recoveries");
    case 163:
      return blackwell ? NVML_ERROR_NOT_SUPPORTED : putOfLink(2, "nvlink_crc");
    case 202:
      return blackwell ? put("nvlink_bytes", 0) : NVML_ERROR_NOT_SUPPORTED;
    case 208:
    case 211:
      return blackwell ? putOfLink(-1, "") : NVML_ERROR_NOT_SUPPORTED;
    case 215:
      return blackwell ? putOfLink(1, "nvlink_recoveries") : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_RETIRED_PENDING:
      return put("retired_pending", 0);
    case 230:
      return put("recovery_action", 0);
    default:
      return NVML_ERROR_NOT_SUPPORTED;
  }
}

/// The cluster's id is one number over and over; 0: a fabric of one node.
template <typename Info>
void giveClique(nvmlDevice_t device, Info& info) {
  int byte = 0;
  (void)giveNumber(device, "fabric_cluster", 0, &byte);
  memset(info.clusterUuid, byte, sizeof info.clusterUuid);
  (void)giveNumber(device, "fabric_clique", 0, &info.cliqueId);
}

}  // namespace

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, int type, int, unsigned long long* count) {
  BEHAVE(indexOf(d));
  return giveNumber(d, type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? "ecc_corrected" : "ecc_uncorrected", 0,
                    count);
}
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t d, int type, int, int place,
                                             unsigned long long* count) {
  BEHAVE(indexOf(d));
  if (place == NVML_MEMORY_LOCATION_SRAM) return giveNumber(d, "ecc_sram", 0, count);
  return giveNumber(d, type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? "ecc_corrected" : "ecc_uncorrected", 0,
                    count);
}
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t d, nvmlEccSramErrorStatus_t* status) {
  BEHAVE(indexOf(d));
  if (status->version != NVML_STRUCT_VERSION(nvmlEccSramErrorStatus_t, 1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  status->bThresholdExceeded = static_cast<unsigned>(scenario().number(indexOf(d), "sram_threshold", 0));
  return giveNumber(d, "ecc_sram", 0, &status->aggregateUncSecDed);
}
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t d, int, unsigned* count, unsigned long long*) {
  BEHAVE(indexOf(d));
  const nvmlReturn_t code = giveNumber(d, "retired_pages", 0, count);
  return code == NVML_SUCCESS && *count > 0 ? NVML_ERROR_INSUFFICIENT_SIZE : code;
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned* corrected, unsigned* uncorrected,
                                       unsigned* pending, unsigned* failed) {
  BEHAVE(indexOf(d));
  *corrected = 0;
  (void)giveNumber(d, "remap_pending", 0, pending);
  (void)giveNumber(d, "remap_failed", 0, failed);
  return giveNumber(d, "remapped_rows", 0, uncorrected);
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned* milliwatts) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "power_mw", 72000, milliwatts);
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned* milliwatts) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "power_limit_mw", 700000, milliwatts);
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, int type, unsigned* megahertz) {
  BEHAVE(indexOf(d));
  return giveNumber(d, type == NVML_CLOCK_SM ? "clock" : "memory_clock", type == NVML_CLOCK_SM ? 1755 : 2619,
                    megahertz);
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, int type, unsigned* megahertz) {
  BEHAVE(indexOf(d));
  return giveNumber(d, type == NVML_CLOCK_SM ? "clock_max" : "memory_clock_max",
                    type == NVML_CLOCK_SM ? 1980 : 2619, megahertz);
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t* use) {
  BEHAVE(indexOf(d));
  *use = {};
  return giveNumber(d, "utilization", 100, &use->gpu);
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned link, int* active) {
  BEHAVE(indexOf(d));
  if (link >= linksOf(d)) return NVML_ERROR_INVALID_ARGUMENT;
  *active = linkIsDown(d, link) ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t d, nvmlDevice_t peer, int index, int* status) {
  BEHAVE(indexOf(d));
  if (index != NVML_P2P_CAPS_INDEX_NVLINK || d == peer) return NVML_ERROR_INVALID_ARGUMENT;
  const bool joined = linksOf(d) > 0 && linksOf(peer) > 0;
  return giveNumber(d, "p2p_nvlink", joined ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED, status);
}
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int count, nvmlFieldValue_t* fields) {
  BEHAVE(indexOf(d));
  for (int i = 0; i < count; ++i) fields[i].nvmlReturn = fieldOf(d, fields[i]);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned* count,
                                                     nvmlProcessInfo_t* processes) {
  BEHAVE(indexOf(d));
  const auto pid = static_cast<unsigned>(scenario().number(indexOf(d), "process", 0));
  if (pid != 0 && *count > 0) processes[0] = {pid, 1u << 30, ~0u, ~0u};
  *count = pid != 0 ? 1 : 0;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t d, unsigned* cores) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "cores", 16896, cores);
}
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t d, unsigned* bits) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "bus_width", 5120, bits);
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, int, unsigned* celsius) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "temperature", 35, celsius);
}
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_t* temperature) {
  BEHAVE(indexOf(d));
  if (temperature->version != NVML_STRUCT_VERSION(nvmlTemperature_t, 1)) return NVML_ERROR_UNKNOWN;
  return giveNumber(d, "temperature", 35, &temperature->temperature);
}
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, int threshold, unsigned* celsius) {
  BEHAVE(indexOf(d));
  if (threshold != 1) return NVML_ERROR_INVALID_ARGUMENT;
  return giveNumber(d, "slowdown_temperature", 89, celsius);
}
nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t d, nvmlMarginTemperature_t* margin) {
  BEHAVE(indexOf(d));
  if (!tellsMargin(d)) return NVML_ERROR_FUNCTION_NOT_FOUND;
  if (margin->version != NVML_STRUCT_VERSION(nvmlMarginTemperature_t, 1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return giveNumber(d, "margin", 52, &margin->marginTemperature);
}
nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t d) {
  BEHAVE(indexOf(d));
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t d, nvmlRowRemapperHistogramValues_t* banks) {
  BEHAVE(indexOf(d));
  *banks = {};
  (void)giveNumber(d, "banks_without_rows", 0, &banks->none);
  (void)giveNumber(d, "banks_with_few_rows", 0, &banks->low);
  return giveNumber(d, "banks", 640, &banks->max);
}
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t d, int policy, nvmlViolationTime_t* time) {
  BEHAVE(indexOf(d));
  *time = {};
  if (policy == NVML_PERF_POLICY_POWER) return giveNumber(d, "power_cap_ns", 0, &time->violationTime);
  if (policy == NVML_PERF_POLICY_THERMAL)
    return giveNumber(d, "thermal_violation_ns", scenario().number(indexOf(d), "thermal_ns", 0),
                      &time->violationTime);
  return giveNumber(d, "board_limit_ns", 0, &time->violationTime);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long* reasons) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "clock_reasons", 0, reasons);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long* reasons) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "clock_reasons", 0, reasons);
}
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t d, unsigned, int, unsigned long long* count) {
  BEHAVE(indexOf(d));
  *count = 0;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t* info) {
  BEHAVE(indexOf(d));
  if (header().fabricInfo < 1) return NVML_ERROR_FUNCTION_NOT_FOUND;
  info->status = NVML_SUCCESS;
  giveClique(d, *info);
  return giveNumber(d, "fabric", NVML_GPU_FABRIC_STATE_COMPLETED, &info->state);
}
/// A caller's struct may be of any version that the header has; an older library lacks the function.
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfo_v3_t* info) {
  BEHAVE(indexOf(d));
  constexpr int kHealthy = 0x1aa;
  const unsigned version = info->version >> 24;
  const size_t size = info->version & 0xffffffU;
  if (header().fabricInfo < 2) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const bool known = (version == 2 && size == sizeof(nvmlGpuFabricInfo_v2_t)) ||
                     (version == 3 && size == sizeof(nvmlGpuFabricInfo_v3_t));
  if (!known || version > header().fabricInfo) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  info->status = NVML_SUCCESS;
  giveClique(d, *info);
  (void)giveNumber(d, "fabric_mask", kHealthy, &info->healthMask);
  if (version == 3) (void)giveNumber(d, "fabric_summary", 1, &info->healthSummary);
  return giveNumber(d, "fabric", NVML_GPU_FABRIC_STATE_COMPLETED, &info->state);
}
