// SPDX-License-Identifier: Apache-2.0
// A real libnvidia-ml.so.1 that answers as a scenario file says (scenario.h), so that every path over NVML is
// tested without a GPU: healthy GPUs, sick ones, calls that fail, hang or crash.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/cuda/inventory/nvml_types.h"
#include "tests/fakes/nvml/scenario.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

const Scenario& scenario() {
  return Scenario::loaded();
}

/// Handles are addresses of this table's elements.
std::array<char, 64> handles;

nvmlDevice_t handleOf(unsigned index) {
  return reinterpret_cast<nvmlDevice_t>(&handles[index]);
}

int indexOf(nvmlDevice_t device) {
  return static_cast<int>(reinterpret_cast<char*>(device) - handles.data());
}

/// Does what the scenario wants of this call: a return code, or never to return.
nvmlReturn_t behave(const char* function, int gpu = -1) {
  const std::string wanted = scenario().behaviour(function, gpu);
  if (wanted.empty()) return NVML_SUCCESS;
  if (wanted == "hang")
    while (true) pause();
  if (wanted == "crash") {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  return std::atoi(wanted.c_str());
}

#define BEHAVE(gpu) \
  if (const nvmlReturn_t code = behave(__func__, gpu); code != NVML_SUCCESS) return code

nvmlReturn_t give(const std::string& text, char* buffer, unsigned length) {
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(buffer, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

/// A number of the scenario; "none" says that the device has no such thing.
template <typename T>
nvmlReturn_t giveNumber(nvmlDevice_t device, const char* key, double otherwise, T* value) {
  if (scenario().text(indexOf(device), key) == "none") return NVML_ERROR_NOT_SUPPORTED;
  *value = static_cast<T>(scenario().number(indexOf(device), key, otherwise));
  return NVML_SUCCESS;
}

nvmlReturn_t giveText(nvmlDevice_t device, const char* key, const std::string& otherwise, char* buffer,
                      unsigned length) {
  const std::string text = scenario().text(indexOf(device), key, otherwise);
  return text == "none" ? NVML_ERROR_NOT_SUPPORTED : give(text, buffer, length);
}

unsigned linksOf(nvmlDevice_t device) {
  return static_cast<unsigned>(scenario().number(indexOf(device), "nvlinks", 18));
}

bool linkIsDown(nvmlDevice_t device, unsigned link) {
  return scenario().number(indexOf(device), "nvlink_down", -1) == static_cast<double>(link);
}

struct EventSet {
  std::vector<int> gpus;
  std::vector<size_t> delivered;  ///< XIDs of each that were told, or happened before
};

nvmlReturn_t fieldOf(nvmlDevice_t device, nvmlFieldValue_t& field) {
  const auto put = [&](const char* key, double otherwise) {
    field.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    return giveNumber(device, key, otherwise, &field.value.ullVal);
  };
  switch (field.fieldId) {
    case NVML_FI_DEV_MEMORY_TEMP:
      return put("memory_temperature", 45);
    case NVML_FI_DEV_NVLINK_LINK_COUNT:
      return put("nvlinks", 18);
    case NVML_FI_DEV_NVLINK_GET_SPEED:
    case NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON:
      return put("nvlink_speed", 26562);
    case NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY:
      if (field.scopeId != 0) return field.value.ullVal = 0, NVML_SUCCESS;
      return put("nvlink_replays", 0);
    case NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY:
    case NVML_FI_DEV_NVLINK_ERROR_DL_CRC:
      field.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
      field.value.uiVal = 0;
      return NVML_SUCCESS;
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN:
      return put("thermal_ns", 0);
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN:
      return put("hw_thermal_ns", 0);
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN:
      return put("power_brake_ns", 0);
    case NVML_FI_DEV_RETIRED_PENDING:
      return put("retired_pending", 0);
    default:
      return NVML_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

// Each definition below has the type that our declarations give it.
#define SAME_TYPE(name, parameters) EXPORT nvmlReturn_t name parameters;
MUSTER_NVML_FUNCTIONS(SAME_TYPE, SAME_TYPE)

EXPORT const char* nvmlErrorString(nvmlReturn_t code) {
  switch (code) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

nvmlReturn_t nvmlInit_v2() {
  Scenario::load();
  BEHAVE(-1);
  return std::atoi(scenario().fact("init", "0").c_str());
}
nvmlReturn_t nvmlShutdown() {
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetDriverVersion(char* text, unsigned length) {
  BEHAVE(-1);
  return give(scenario().fact("driver", "580.95.05"), text, length);
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  BEHAVE(-1);
  return give(scenario().fact("nvml", "13.580.95.05"), text, length);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  BEHAVE(-1);
  *version = std::atoi(scenario().fact("cuda", "13000").c_str());
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetProcessName(unsigned /*pid*/, char* name, unsigned length) {
  BEHAVE(-1);
  return give("python3", name, length);
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  BEHAVE(-1);
  *count = static_cast<unsigned>(std::atoi(scenario().fact("count", "8").c_str()));
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (index >= handles.size()) return NVML_ERROR_INVALID_ARGUMENT;
  BEHAVE(static_cast<int>(index));
  *device = handleOf(index);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char* text, unsigned length) {
  BEHAVE(indexOf(d));
  return giveText(d, "name", "NVIDIA H100 80GB HBM3", text, length);
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char* text, unsigned length) {
  BEHAVE(indexOf(d));
  return giveText(d, "uuid", "GPU-00000000-0000-0000-0000-00000000000" + std::to_string(indexOf(d)), text,
                  length);
}
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t d, char* text, unsigned length) {
  BEHAVE(indexOf(d));
  return giveText(d, "serial", "165102301000" + std::to_string(indexOf(d)), text, length);
}
nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t d, char* text, unsigned length) {
  BEHAVE(indexOf(d));
  return giveText(d, "board", "692-2G520-0200-000", text, length);
}
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t d, char* text, unsigned length) {
  BEHAVE(indexOf(d));
  return giveText(d, "vbios", "96.00.74.00.01", text, length);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t* info) {
  BEHAVE(indexOf(d));
  *info = {};
  info->bus = 0x18 + 0x12 * static_cast<unsigned>(indexOf(d));
  info->pciDeviceId = static_cast<unsigned>(
      strtoul(scenario().text(indexOf(d), "pci_device_id", "0x233010de").c_str(), nullptr, 16));
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t* memory) {
  BEHAVE(indexOf(d));
  *memory = {};
  return giveNumber(d, "memory", 85520809984.0, &memory->total);
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int* major, int* minor) {
  BEHAVE(indexOf(d));
  *minor = 0;
  return giveNumber(d, "capability", 9, major);
}
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t d, unsigned size, unsigned long* set) {
  BEHAVE(indexOf(d));
  std::fill_n(set, size, ~0UL);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t d, unsigned size, unsigned long* set, unsigned) {
  BEHAVE(indexOf(d));
  std::fill_n(set, size, 0UL);
  set[0] = indexOf(d) < 4 ? 1UL : 2UL;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t d, unsigned* value) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "pcie_generation", 5, value);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t d, unsigned* value) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "pcie_generation_max", 5, value);
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t d, unsigned* value) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "pcie_width", 16, value);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t d, unsigned* value) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "pcie_width_max", 16, value);
}
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t d, unsigned* value) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "pcie_replays", 0, value);
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned* now, unsigned* pending) {
  BEHAVE(indexOf(d));
  const nvmlReturn_t code = giveNumber(d, "mig", 0, now);
  *pending = *now;
  return code;
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t d, int* mode) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "compute_mode", 0, mode);
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, int* mode) {
  BEHAVE(indexOf(d));
  return giveNumber(d, "persistence", 1, mode);
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, int* now, int* pending) {
  BEHAVE(indexOf(d));
  const nvmlReturn_t code = giveNumber(d, "ecc", 1, now);
  *pending = *now;
  return code;
}
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
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t d, int policy, nvmlViolationTime_t* time) {
  BEHAVE(indexOf(d));
  *time = {};
  const char* key = policy == NVML_PERF_POLICY_POWER     ? "power_cap_ns"
                    : policy == NVML_PERF_POLICY_THERMAL ? "thermal_violation_ns"
                                                         : "board_limit_ns";
  return giveNumber(d, key, 0, &time->violationTime);
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
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfoV_t* info) {
  BEHAVE(indexOf(d));
  if (info->version != NVML_STRUCT_VERSION(nvmlGpuFabricInfoV_t, 2)) return NVML_ERROR_UNKNOWN;
  info->status = NVML_SUCCESS;
  return giveNumber(d, "fabric", NVML_GPU_FABRIC_STATE_COMPLETED, &info->state);
}
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, unsigned long long* types) {
  BEHAVE(indexOf(d));
  *types = nvmlEventTypeXidCriticalError;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  BEHAVE(-1);
  *set = reinterpret_cast<nvmlEventSet_t>(new EventSet);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long, nvmlEventSet_t set) {
  BEHAVE(indexOf(d));
  auto* own = reinterpret_cast<EventSet*>(set);
  own->gpus.push_back(indexOf(d));
  own->delivered.push_back(scenario().xids(indexOf(d)).size());
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data, unsigned) {
  BEHAVE(-1);
  auto* own = reinterpret_cast<EventSet*>(set);
  for (size_t i = 0; i < own->gpus.size(); ++i) {
    const std::vector<int> xids = scenario().xids(own->gpus[i]);
    if (own->delivered[i] >= xids.size()) continue;
    *data = {handleOf(static_cast<unsigned>(own->gpus[i])), nvmlEventTypeXidCriticalError,
             static_cast<unsigned long long>(xids[own->delivered[i]++]), ~0u, ~0u};
    return NVML_SUCCESS;
  }
  return NVML_ERROR_TIMEOUT;
}
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  delete reinterpret_cast<EventSet*>(set);
  return NVML_SUCCESS;
}
