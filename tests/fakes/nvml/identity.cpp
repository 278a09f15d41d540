// SPDX-License-Identifier: Apache-2.0
// The fake NVML: what a GPU is, where it is, and how it is set up.
#include <algorithm>

#include "tests/fakes/nvml/answers.h"

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
  (void)giveNumber(d, "capability_minor", 0, minor);
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
