// SPDX-License-Identifier: Apache-2.0
// A GPU's place in the NVLink fabric.
#include "kernels/cuda/inventory/fabric_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace muster::cuda {

Answer<nvmlGpuFabricInfo_v3_t> readFabricInfo(const Nvml& nvml, nvmlDevice_t device) {
  Answer<nvmlGpuFabricInfo_v3_t> fabric{NVML_ERROR_FUNCTION_NOT_FOUND, {}};
  for (const unsigned version :
       {NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v3_t, 3U), NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v2_t, 2U)}) {
    if (nvml->nvmlDeviceGetGpuFabricInfoV == nullptr) break;
    fabric.value = {};
    fabric.value.version = version;
    fabric.code = nvml->nvmlDeviceGetGpuFabricInfoV(device, &fabric.value);
    const bool unknownForm =
        fabric.code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH || fabric.code == NVML_ERROR_INVALID_ARGUMENT;
    if (!unknownForm && fabric.code != NVML_ERROR_FUNCTION_NOT_FOUND) return fabric;
  }
  const auto first = ask<nvmlGpuFabricInfo_t>(nvml->nvmlDeviceGetGpuFabricInfo, device);
  if (first.code == NVML_ERROR_FUNCTION_NOT_FOUND) return fabric;
  fabric = {first.code, {}};
  std::copy(std::begin(first.value.clusterUuid), std::end(first.value.clusterUuid), fabric.value.clusterUuid);
  fabric.value.status = first.value.status;
  fabric.value.cliqueId = first.value.cliqueId;
  fabric.value.state = first.value.state;
  return fabric;
}

std::string cliqueOf(const nvmlGpuFabricInfo_v3_t& fabric) {
  if (fabric.state != NVML_GPU_FABRIC_STATE_COMPLETED || fabric.status != NVML_SUCCESS) return "";
  std::string id;
  for (size_t i = 0; i < std::size(fabric.clusterUuid); ++i)
    id += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", fabric.clusterUuid[i]);
  return fmt::format("{}.{}", id, fabric.cliqueId);
}

bool spansNodes(const nvmlGpuFabricInfo_v3_t& fabric) {
  return std::any_of(std::begin(fabric.clusterUuid), std::end(fabric.clusterUuid),
                     [](unsigned char byte) { return byte != 0; });
}

}  // namespace muster::cuda
