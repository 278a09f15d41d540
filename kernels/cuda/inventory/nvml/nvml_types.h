// SPDX-License-Identifier: Apache-2.0
// The part of NVML's C interface that we use, declared here because the library is opened at run time and its
// header is not needed to build. Names, values and layouts are those of NVIDIA's public API, version 13
// (docs.nvidia.com/deploy/nvml-api).
#pragma once

#include <cstdint>
#include <optional>

extern "C" {

using nvmlReturn_t = int;
enum : nvmlReturn_t {
  NVML_SUCCESS = 0,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_DEPRECATED = 26,
  NVML_ERROR_UNKNOWN = 999,
};

using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlEventSet_t = struct nvmlEventSet_st*;

enum : unsigned {
  NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE = 32,
  NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE = 16,
  NVML_TEXT_SIZE = 96,  ///< the longest of NVML's buffer sizes for names, UUIDs, serials and versions
  NVML_GPU_FABRIC_UUID_LEN = 16,
  NVML_NVLINK_MAX_LINKS = 36,
};

struct nvmlPciInfo_t {
  char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;  ///< device id << 16 | vendor id
  unsigned int pciSubSystemId;
  char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
};

struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct nvmlUtilization_t {
  unsigned int gpu;  ///< percent
  unsigned int memory;
};

struct nvmlProcessInfo_t {  // version 2 and 3 of the call
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};

struct nvmlViolationTime_t {
  unsigned long long referenceTime;  ///< us
  unsigned long long violationTime;  ///< ns
};

struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType;
  unsigned long long eventData;  ///< the XID
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};

struct nvmlTemperature_t {  // version 1
  unsigned int version;
  int sensorType;
  int temperature;
};

struct nvmlMarginTemperature_t {  // version 1
  unsigned int version;
  int marginTemperature;
};

struct nvmlRowRemapperHistogramValues_t {  // banks by the spare rows that they have left
  unsigned int max;
  unsigned int high;
  unsigned int partial;
  unsigned int low;
  unsigned int none;
};

struct nvmlEccSramErrorStatus_t {  // version 1
  unsigned int version;
  unsigned long long aggregateUncParity;
  unsigned long long aggregateUncSecDed;
  unsigned long long aggregateCor;
  unsigned long long volatileUncParity;
  unsigned long long volatileUncSecDed;
  unsigned long long volatileCor;
  unsigned long long aggregateUncBucketL2;
  unsigned long long aggregateUncBucketSm;
  unsigned long long aggregateUncBucketPcie;
  unsigned long long aggregateUncBucketMcu;
  unsigned long long aggregateUncBucketOther;
  unsigned int bThresholdExceeded;
};

struct nvmlGpuFabricInfo_t {  // of drivers before 550
  unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
  nvmlReturn_t status;
  unsigned int cliqueId;
  unsigned char state;
};

struct nvmlGpuFabricInfo_v3_t {  // version 2, from driver 550 on, ends before healthSummary
  unsigned int version;
  unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
  nvmlReturn_t status;
  unsigned int cliqueId;
  unsigned char state;
  unsigned int healthMask;
  unsigned char healthSummary;
};

struct nvmlGpuFabricInfo_v2_t {
  unsigned int version;
  unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
  nvmlReturn_t status;
  unsigned int cliqueId;
  unsigned char state;
  unsigned int healthMask;
};

union nvmlValue_t {
  double dVal;
  int siVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
  unsigned short usVal;
};

struct nvmlFieldValue_t {
  unsigned int fieldId;
  unsigned int scopeId;
  long long timestamp;
  long long latencyUsec;
  int valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};

enum : int {
  NVML_VALUE_TYPE_DOUBLE = 0,
  NVML_VALUE_TYPE_UNSIGNED_INT = 1,
  NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
  NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
  NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
  NVML_VALUE_TYPE_SIGNED_INT = 5,
  NVML_VALUE_TYPE_UNSIGNED_SHORT = 6,
};

/// The version word of a struct: its size, and its number in the highest byte.
#define NVML_STRUCT_VERSION(type, number) (static_cast<unsigned>(sizeof(type)) | ((number) << 24U))

enum : int { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };
enum : int { NVML_P2P_CAPS_INDEX_NVLINK = 2 };
enum : int { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5, NVML_P2P_STATUS_UNKNOWN = 6 };
enum : int { NVML_TEMPERATURE_GPU = 0 };
enum : int { NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1 };
enum : int { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum : int { NVML_PERF_POLICY_POWER = 0, NVML_PERF_POLICY_THERMAL = 1 };
enum : int { NVML_MEMORY_ERROR_TYPE_CORRECTED = 0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 };
enum : int { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 };
enum : int { NVML_MEMORY_LOCATION_DRAM = 2, NVML_MEMORY_LOCATION_SRAM = 7 };
enum : int {
  NVML_COMPUTEMODE_DEFAULT = 0,
  NVML_COMPUTEMODE_PROHIBITED = 2,
  NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
};
enum : int {
  NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS = 0,
  NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 1
};
enum : int {
  NVML_NVLINK_ERROR_DL_REPLAY = 0,
  NVML_NVLINK_ERROR_DL_RECOVERY = 1,
  NVML_NVLINK_ERROR_DL_CRC_FLIT = 2,
  NVML_NVLINK_ERROR_DL_ECC_DATA = 4
};
enum : unsigned { NVML_AFFINITY_SCOPE_NODE = 0 };
enum : unsigned char {
  NVML_GPU_FABRIC_STATE_NOT_SUPPORTED = 0,
  NVML_GPU_FABRIC_STATE_NOT_STARTED = 1,
  NVML_GPU_FABRIC_STATE_IN_PROGRESS = 2,
  NVML_GPU_FABRIC_STATE_COMPLETED = 3
};
enum : unsigned long long { nvmlEventTypeXidCriticalError = 0x8 };
enum : unsigned long long {
  nvmlClocksEventReasonApplicationsClocksSetting = 0x2,
  nvmlClocksThrottleReasonHwSlowdown = 0x8,
  nvmlClocksEventReasonSwThermalSlowdown = 0x20,
  nvmlClocksThrottleReasonHwThermalSlowdown = 0x40,
  nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 0x80,
};
enum : unsigned {
  NVML_GPU_RECOVERY_ACTION_NONE = 0,
  NVML_GPU_RECOVERY_ACTION_GPU_RESET = 1,
  NVML_GPU_RECOVERY_ACTION_NODE_REBOOT = 2,
  NVML_GPU_RECOVERY_ACTION_DRAIN_P2P = 3,
  NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET = 4,
  NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN = 5,
  NVML_GPU_RECOVERY_ACTION_BUS_RESET = 6,
  NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT = 7,
};

enum : unsigned {
  NVML_FI_DEV_RETIRED_PENDING = 31,
  NVML_FI_DEV_PERF_POLICY_POWER = 74,  // ns, cumulative
  NVML_FI_DEV_PERF_POLICY_THERMAL = 75,
  NVML_FI_DEV_MEMORY_TEMP = 82,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON = 90,
  NVML_FI_DEV_NVLINK_LINK_COUNT = 91,
  NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138,  // KiB; not on Blackwell
  NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY = 161,     // these three with scopeId = link, not on Blackwell
  NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY = 162,
  NVML_FI_DEV_NVLINK_ERROR_DL_CRC = 163,
  NVML_FI_DEV_NVLINK_GET_SPEED = 164,
  NVML_FI_DEV_C2C_LINK_COUNT = 170,
  NVML_FI_DEV_C2C_LINK_GET_STATUS = 171,  // with scopeId = link: 0 inactive, 1 active
  NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT = 194,
  NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES = 202,  // these four from Blackwell on
  NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS = 208,
  NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS = 211,
  NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS = 215,
  NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230,
};

/// Every function that we call, as (name, parameters): REQUIRED ones are in every driver that we support,
/// OPTIONAL ones are newer, or are announced to go. Enumerations are passed as int or unsigned, as the C ABI
/// does.
#define MUSTER_NVML_FUNCTIONS(REQUIRED, OPTIONAL)                                                  \
  REQUIRED(nvmlInit_v2, (void))                                                                    \
  REQUIRED(nvmlShutdown, (void))                                                                   \
  REQUIRED(nvmlSystemGetDriverVersion, (char*, unsigned))                                          \
  REQUIRED(nvmlSystemGetNVMLVersion, (char*, unsigned))                                            \
  REQUIRED(nvmlSystemGetCudaDriverVersion_v2, (int*))                                              \
  REQUIRED(nvmlSystemGetProcessName, (unsigned, char*, unsigned))                                  \
  REQUIRED(nvmlDeviceGetCount_v2, (unsigned*))                                                     \
  REQUIRED(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvmlDevice_t*))                               \
  REQUIRED(nvmlDeviceGetName, (nvmlDevice_t, char*, unsigned))                                     \
  REQUIRED(nvmlDeviceGetUUID, (nvmlDevice_t, char*, unsigned))                                     \
  REQUIRED(nvmlDeviceGetSerial, (nvmlDevice_t, char*, unsigned))                                   \
  REQUIRED(nvmlDeviceGetBoardPartNumber, (nvmlDevice_t, char*, unsigned))                          \
  REQUIRED(nvmlDeviceGetVbiosVersion, (nvmlDevice_t, char*, unsigned))                             \
  REQUIRED(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t*))                                \
  REQUIRED(nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t*))                                 \
  REQUIRED(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t, int*, int*))                         \
  REQUIRED(nvmlDeviceGetCpuAffinity, (nvmlDevice_t, unsigned, unsigned long*))                     \
  REQUIRED(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t, unsigned*))                         \
  REQUIRED(nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t, unsigned*))                          \
  REQUIRED(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t, unsigned*))                              \
  REQUIRED(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t, unsigned*))                               \
  REQUIRED(nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t, unsigned*))                              \
  REQUIRED(nvmlDeviceGetMigMode, (nvmlDevice_t, unsigned*, unsigned*))                             \
  REQUIRED(nvmlDeviceGetComputeMode, (nvmlDevice_t, int*))                                         \
  REQUIRED(nvmlDeviceGetPersistenceMode, (nvmlDevice_t, int*))                                     \
  REQUIRED(nvmlDeviceGetEccMode, (nvmlDevice_t, int*, int*))                                       \
  REQUIRED(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t, int, int, unsigned long long*))             \
  REQUIRED(nvmlDeviceGetMemoryErrorCounter, (nvmlDevice_t, int, int, int, unsigned long long*))    \
  REQUIRED(nvmlDeviceGetRetiredPages, (nvmlDevice_t, int, unsigned*, unsigned long long*))         \
  REQUIRED(nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned*))                                     \
  REQUIRED(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t, unsigned*))                             \
  REQUIRED(nvmlDeviceGetClockInfo, (nvmlDevice_t, int, unsigned*))                                 \
  REQUIRED(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t, int, unsigned*))                              \
  REQUIRED(nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t*))                      \
  REQUIRED(nvmlDeviceGetNvLinkState, (nvmlDevice_t, unsigned, int*))                               \
  REQUIRED(nvmlDeviceGetFieldValues, (nvmlDevice_t, int, nvmlFieldValue_t*))                       \
  REQUIRED(nvmlDeviceGetSupportedEventTypes, (nvmlDevice_t, unsigned long long*))                  \
  REQUIRED(nvmlEventSetCreate, (nvmlEventSet_t*))                                                  \
  REQUIRED(nvmlDeviceRegisterEvents, (nvmlDevice_t, unsigned long long, nvmlEventSet_t))           \
  REQUIRED(nvmlEventSetWait_v2, (nvmlEventSet_t, nvmlEventData_t*, unsigned))                      \
  REQUIRED(nvmlEventSetFree, (nvmlEventSet_t))                                                     \
  OPTIONAL(nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice_t, unsigned*, nvmlProcessInfo_t*)) \
  OPTIONAL(nvmlDeviceGetSramEccErrorStatus, (nvmlDevice_t, nvmlEccSramErrorStatus_t*))             \
  OPTIONAL(nvmlDeviceGetRemappedRows, (nvmlDevice_t, unsigned*, unsigned*, unsigned*, unsigned*))  \
  OPTIONAL(nvmlDeviceGetRowRemapperHistogram, (nvmlDevice_t, nvmlRowRemapperHistogramValues_t*))   \
  OPTIONAL(nvmlDeviceValidateInforom, (nvmlDevice_t))                                              \
  OPTIONAL(nvmlDeviceGetMemoryAffinity, (nvmlDevice_t, unsigned, unsigned long*, unsigned))        \
  OPTIONAL(nvmlDeviceGetNumGpuCores, (nvmlDevice_t, unsigned*))                                    \
  OPTIONAL(nvmlDeviceGetMemoryBusWidth, (nvmlDevice_t, unsigned*))                                 \
  OPTIONAL(nvmlDeviceGetTemperature, (nvmlDevice_t, int, unsigned*))                               \
  OPTIONAL(nvmlDeviceGetTemperatureV, (nvmlDevice_t, nvmlTemperature_t*))                          \
  OPTIONAL(nvmlDeviceGetTemperatureThreshold, (nvmlDevice_t, int, unsigned*))                      \
  OPTIONAL(nvmlDeviceGetMarginTemperature, (nvmlDevice_t, nvmlMarginTemperature_t*))               \
  OPTIONAL(nvmlDeviceGetViolationStatus, (nvmlDevice_t, int, nvmlViolationTime_t*))                \
  OPTIONAL(nvmlDeviceGetCurrentClocksEventReasons, (nvmlDevice_t, unsigned long long*))            \
  OPTIONAL(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t, unsigned long long*))         \
  OPTIONAL(nvmlDeviceGetNvLinkErrorCounter, (nvmlDevice_t, unsigned, int, unsigned long long*))    \
  OPTIONAL(nvmlDeviceGetP2PStatus, (nvmlDevice_t, nvmlDevice_t, int, int*))                        \
  OPTIONAL(nvmlDeviceGetGpuFabricInfo, (nvmlDevice_t, nvmlGpuFabricInfo_t*))                       \
  OPTIONAL(nvmlDeviceGetGpuFabricInfoV, (nvmlDevice_t, nvmlGpuFabricInfo_v3_t*))

/// Gives the words for a return code; the one function that does not return one.
using nvmlErrorString_t = const char* (*)(nvmlReturn_t);
}

namespace muster::cuda {

/// Ids of the fields NVML_FI_DEV_CLOCKS_EVENT_REASON_{SW_THERM,HW_THERM,HW_POWER_BRAKE}_SLOWDOWN: how long
/// the clocks were held down, ns, cumulative.
struct SlowdownFields {
  unsigned swThermal;
  unsigned hwThermal;
  unsigned hwPowerBrake;
};

/// NVIDIA has moved these ids: CUDA 12.9 (driver 575) has them from 251 on, CUDA 13.1 (driver 590) and newer
/// from 269 on, and CUDA 13.0 (driver 580) either, by its update. The other place holds settings of power
/// smoothing. So a driver of which the ids are not certain gives none.
constexpr std::optional<SlowdownFields> slowdownFields(int driverBranch) {
  if (driverBranch == 575) return SlowdownFields{251, 252, 253};
  if (driverBranch >= 590) return SlowdownFields{269, 270, 271};
  return std::nullopt;
}

/// The functions of an opened library; nullptr for an optional one that it lacks.
struct NvmlApi {
#define MUSTER_NVML_POINTER(name, parameters) nvmlReturn_t(*name) parameters = nullptr;
  MUSTER_NVML_FUNCTIONS(MUSTER_NVML_POINTER, MUSTER_NVML_POINTER)
#undef MUSTER_NVML_POINTER
  nvmlErrorString_t nvmlErrorString = nullptr;
};

}  // namespace muster::cuda
