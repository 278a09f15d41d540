// SPDX-License-Identifier: Apache-2.0
// A real libnvidia-ml.so.1 that answers as a scenario file says (scenario.h), so that every path over NVML is
// tested without a GPU: healthy GPUs, sick ones, calls that fail, hang or crash. Here: the library, the node,
// events.
#include <algorithm>
#include <vector>

#include "tests/fakes/nvml/answers.h"

namespace {

struct EventSet {
  std::vector<int> gpus;
  std::vector<size_t> delivered;  ///< XIDs of each that were told, or happened before
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(nvmlReturn_t code) {
  switch (code) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
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
  return give(scenario().fact("nvml", header().reported), text, length);
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
