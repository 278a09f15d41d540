// SPDX-License-Identifier: Apache-2.0
// What one GPU is.
#include "kernels/cuda/inventory/gpu_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "kernels/cuda/inventory/fabric_info.h"
#include "kernels/cuda/inventory/gpu_peaks.h"
#include "kernels/cuda/inventory/nvlink.h"
#include "kernels/cuda/inventory/nvml/pci.h"
#include "kernels/host/inventory/cpu.h"
#include "runner/core/units.h"

namespace muster::cuda {
namespace {

Error unknown(const Nvml& nvml, const Gpu& gpu, const char* what, nvmlReturn_t code) {
  const bool lost = Answer<int>{code, 0}.lost();
  return {lost ? ErrorCode::kNotFound : ErrorCode::kIo,
          std::string(what) + " cannot be read: " + nvml.words(code) + "; see dmesg | grep NVRM",
          gpu.id + (gpu.pciAddress.empty() ? "" : " at " + gpu.pciAddress)};
}

/// Writes facts: one that is absent is left out, one that failed says why.
class Facts {
 public:
  Facts(const Nvml& nvml, DeviceInfo& info) : nvml_(nvml), facts_(info.facts) {}

  void text(const char* name, const Answer<std::string>& answer) {
    if (answer.ok())
      facts_[name] = answer.value;
    else if (!answer.absent())
      facts_[name] = "unreadable: " + nvml_.words(answer.code);
  }
  template <typename T>
  void number(const char* name, const Answer<T>& answer, const char* unit, double scale = 1) {
    text(name, {answer.code, formatQuantity(static_cast<double>(answer.value) * scale, unit)});
  }
  void mode(const char* name, const Answer<int>& answer) {
    text(name, {answer.code, answer.value == NVML_FEATURE_ENABLED ? "on" : "off"});
  }
  /// "16 of 16"
  void pair(const char* name, const Answer<unsigned>& now, const Answer<unsigned>& most) {
    text(name,
         {now.ok() ? most.code : now.code, std::to_string(now.value) + " of " + std::to_string(most.value)});
  }

 private:
  const Nvml& nvml_;
  std::map<std::string, std::string>& facts_;
};

std::vector<int> nearCpus(const Nvml& nvml, nvmlDevice_t device) {
  constexpr size_t kWords = 1024 / (sizeof(unsigned long) * CHAR_BIT) * 4;  // room for 4096 processors
  std::vector<unsigned long> mask(kWords);
  const std::vector<int> allowed = affinity();
  if (nvml->nvmlDeviceGetCpuAffinity(device, static_cast<unsigned>(mask.size()), mask.data()) != NVML_SUCCESS)
    return allowed;
  constexpr size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  std::vector<int> near;
  for (const int cpu : allowed) {
    const auto at = static_cast<size_t>(cpu);
    if (at / kBits < mask.size() && (mask[at / kBits] >> (at % kBits) & 1UL) != 0) near.push_back(cpu);
  }
  return near.empty() ? allowed : near;
}

int nearNumaNode(const Nvml& nvml, const Gpu& gpu, const Root& root) {
  const int told = pciNumaNode(root, gpu.pciAddress);
  if (told >= 0) return told;
  unsigned long nodes = 0;
  if (nvml->nvmlDeviceGetMemoryAffinity == nullptr ||
      nvml->nvmlDeviceGetMemoryAffinity(gpu.handle, 1, &nodes, NVML_AFFINITY_SCOPE_NODE) != NVML_SUCCESS ||
      nodes == 0)
    return -1;
  return __builtin_ctzl(nodes);
}

std::string computeModeName(int mode) {
  switch (mode) {
    case NVML_COMPUTEMODE_DEFAULT:
      return "default";
    case NVML_COMPUTEMODE_PROHIBITED:
      return "prohibited";
    case NVML_COMPUTEMODE_EXCLUSIVE_PROCESS:
      return "exclusive process";
    default:
      return "mode " + std::to_string(mode);
  }
}

void addSettings(const Nvml& nvml, nvmlDevice_t device, Facts& facts) {
  facts.text("board_part_number", nvml.text(nvml->nvmlDeviceGetBoardPartNumber, device));
  facts.text("vbios", nvml.text(nvml->nvmlDeviceGetVbiosVersion, device));
  facts.pair("pcie_generation", ask<unsigned>(nvml->nvmlDeviceGetCurrPcieLinkGeneration, device),
             ask<unsigned>(nvml->nvmlDeviceGetMaxPcieLinkGeneration, device));
  facts.pair("pcie_width", ask<unsigned>(nvml->nvmlDeviceGetCurrPcieLinkWidth, device),
             ask<unsigned>(nvml->nvmlDeviceGetMaxPcieLinkWidth, device));
  facts.number("power_limit", ask<unsigned>(nvml->nvmlDeviceGetEnforcedPowerLimit, device), "W", 1e-3);
  for (const auto& [name, clock] :
       {std::pair{"clock_sm_max", int{NVML_CLOCK_SM}}, {"clock_memory_max", int{NVML_CLOCK_MEM}}})
    facts.number(name, ask<unsigned>(nvml->nvmlDeviceGetMaxClockInfo, device, clock), "Hz", 1e6);
  int now = 0, pending = 0;
  const nvmlReturn_t ecc = nvml->nvmlDeviceGetEccMode(device, &now, &pending);
  facts.text("ecc", {ecc, std::string(now != 0 ? "on" : "off") + (now == pending ? ""
                                                                  : pending != 0 ? ", on after a reboot"
                                                                                 : ", off after a reboot")});
  unsigned mig = 0, migPending = 0;
  const nvmlReturn_t migCode = nvml->nvmlDeviceGetMigMode(device, &mig, &migPending);
  facts.mode("mig", {migCode, static_cast<int>(mig)});
  facts.mode("persistence", ask<int>(nvml->nvmlDeviceGetPersistenceMode, device));
  const auto mode = ask<int>(nvml->nvmlDeviceGetComputeMode, device);
  facts.text("compute_mode", {mode.code, computeModeName(mode.value)});
}

void addNvLinks(const Nvml& nvml, nvmlDevice_t device, Facts& facts) {
  const auto links = readNvLinks(nvml, device);
  std::string text = std::to_string(links.value.active) + " of " + std::to_string(links.value.present);
  if (links.value.bytesPerSecond.ok() && links.value.active > 0)
    text += " at " + formatQuantity(links.value.bytesPerSecond.value, "B/s");
  facts.text("nvlinks", {links.code, text});
}

}  // namespace

Result<DeviceInfo> describeGpu(const Nvml& nvml, const Gpu& gpu, const Root& root) {
  const auto name = nvml.text(nvml->nvmlDeviceGetName, gpu.handle);
  if (!name.ok()) return unknown(nvml, gpu, "its name", name.code);
  const auto uuid = nvml.text(nvml->nvmlDeviceGetUUID, gpu.handle);
  if (!uuid.ok()) return unknown(nvml, gpu, "its UUID", uuid.code);
  const auto pci = ask<nvmlPciInfo_t>(nvml->nvmlDeviceGetPciInfo_v3, gpu.handle);
  if (!pci.ok()) return unknown(nvml, gpu, "its PCI address", pci.code);
  const auto memory = ask<nvmlMemory_t>(nvml->nvmlDeviceGetMemoryInfo, gpu.handle);
  if (!memory.ok()) return unknown(nvml, gpu, "its memory", memory.code);
  DeviceInfo info;
  info.index = gpu.index;
  info.id = gpu.id;
  info.kind = "gpu";
  info.name = name.value;
  info.uuid = uuid.value;
  const auto serial = nvml.text(nvml->nvmlDeviceGetSerial, gpu.handle);
  if (serial.ok()) info.serial = serial.value;
  info.pciId = fmt::format("{:04x}:{:04x}", pci.value.pciDeviceId & 0xffff, pci.value.pciDeviceId >> 16);
  info.pciAddress = pciAddressOf(pci.value);
  info.memoryBytes = memory.value.total;
  info.numaNode = nearNumaNode(nvml, gpu, root);
  info.cpus = nearCpus(nvml, gpu.handle);
  addPeaks(nvml, gpu.handle, info);
  Facts facts(nvml, info);
  if (!serial.ok()) facts.text("serial", serial);
  addSettings(nvml, gpu.handle, facts);
  addNvLinks(nvml, gpu.handle, facts);
  const auto fabric = readFabricInfo(nvml, gpu.handle);
  if (fabric.ok() && spansNodes(fabric.value)) info.facts["fabric_clique"] = cliqueOf(fabric.value);
  return info;
}

}  // namespace muster::cuda
