// SPDX-License-Identifier: Apache-2.0
// How one GPU is set up.
#include "kernels/cuda/inventory/gpu_setup.h"

#include "kernels/cuda/inventory/nvml/pci.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

void readModes(GpuCollector& c) {
  const Nvml& nvml = c.nvml();
  int now = 0, pending = 0;
  const nvmlReturn_t ecc = nvml->nvmlDeviceGetEccMode(c.device(), &now, &pending);
  if (c.note("ecc_mode", ecc, Answer<int>{ecc, 0}.absent())) c.put("ecc_mode", "bool", now != 0 ? 1 : 0);
  unsigned mig = 0, migPending = 0;
  const nvmlReturn_t code = nvml->nvmlDeviceGetMigMode(c.device(), &mig, &migPending);
  // A GPU that cannot be divided is not divided.
  const bool cannot = Answer<int>{code, 0}.absent();
  if (cannot || c.note("mig_mode", code, false)) c.put("mig_mode", "bool", !cannot && mig != 0 ? 1 : 0);
  c.number("persistence_mode", "bool", ask<int>(nvml->nvmlDeviceGetPersistenceMode, c.device()));
  const auto mode = ask<int>(nvml->nvmlDeviceGetComputeMode, c.device());
  if (c.note("compute_mode_default", mode.code, mode.absent()))
    c.put("compute_mode_default", "bool", mode.value == NVML_COMPUTEMODE_DEFAULT ? 1 : 0);
}

void readLimits(GpuCollector& c) {
  const Nvml& nvml = c.nvml();
  c.number("power_limit", "W", ask<unsigned>(nvml->nvmlDeviceGetEnforcedPowerLimit, c.device()), 1e-3);
  c.number("clock_max", "Hz", ask<unsigned>(nvml->nvmlDeviceGetMaxClockInfo, c.device(), int{NVML_CLOCK_SM}),
           1e6);
  c.number("pcie_link_width_max", "count", ask<unsigned>(nvml->nvmlDeviceGetMaxPcieLinkWidth, c.device()));
  c.number("pcie_link_generation_max", "count",
           ask<unsigned>(nvml->nvmlDeviceGetMaxPcieLinkGeneration, c.device()));
  c.fact("vbios", nvml.text(nvml->nvmlDeviceGetVbiosVersion, c.device()));
}

Answer<nvmlEccSramErrorStatus_t> sramStatus(const Nvml& nvml, nvmlDevice_t device) {
  Answer<nvmlEccSramErrorStatus_t> status;
  status.value.version = NVML_STRUCT_VERSION(nvmlEccSramErrorStatus_t, 1);
  status.code = nvml->nvmlDeviceGetSramEccErrorStatus == nullptr
                    ? NVML_ERROR_FUNCTION_NOT_FOUND
                    : nvml->nvmlDeviceGetSramEccErrorStatus(device, &status.value);
  return status;
}

unsigned long long sramErrors(const nvmlEccSramErrorStatus_t& counts, bool corrected, bool ever) {
  if (corrected) return ever ? counts.aggregateCor : counts.volatileCor;
  return ever ? counts.aggregateUncParity + counts.aggregateUncSecDed
              : counts.volatileUncParity + counts.volatileUncSecDed;
}

/// Errors by where they happened. "ever" counts over the GPU's whole life, "load" since the driver's. Newer
/// GPUs tell those of the chip's own memories by a call of their own, which only root may make.
void readEccPlaces(GpuCollector& c) {
  const Nvml& nvml = c.nvml();
  const auto status = sramStatus(nvml, c.device());
  const bool forbidden = status.code == NVML_ERROR_NO_PERMISSION;
  if (forbidden)
    c.put("sram_state", "text", 0, "not readable: " + nvml.words(status.code) + "; run as root");
  else if (c.note("sram_threshold_exceeded", status.code, status.absent()))
    c.put("sram_threshold_exceeded", "bool", status.value.bThresholdExceeded != 0 ? 1 : 0);
  for (const bool sram : {true, false})
    for (const bool corrected : {true, false})
      for (const bool ever : {true, false}) {
        auto count = ask<unsigned long long>(
            nvml->nvmlDeviceGetMemoryErrorCounter, c.device(),
            int{corrected ? NVML_MEMORY_ERROR_TYPE_CORRECTED : NVML_MEMORY_ERROR_TYPE_UNCORRECTED},
            int{ever ? NVML_AGGREGATE_ECC : NVML_VOLATILE_ECC},
            int{sram ? NVML_MEMORY_LOCATION_SRAM : NVML_MEMORY_LOCATION_DRAM});
        if (sram && count.absent()) {
          if (forbidden) continue;
          count = {status.code, sramErrors(status.value, corrected, ever)};
        }
        c.number("ecc_errors", "count", count, 1,
                 {{"memory", sram ? "sram" : "dram"},
                  {"kind", corrected ? "corrected" : "uncorrected"},
                  {"since", ever ? "ever" : "load"}});
      }
}

/// Reads the InfoROM, the configuration in a GPU's flash memory, and checks its sums.
void readInforom(GpuCollector& c) {
  const Nvml& nvml = c.nvml();
  const nvmlReturn_t code = nvml->nvmlDeviceValidateInforom == nullptr
                                ? NVML_ERROR_FUNCTION_NOT_FOUND
                                : nvml->nvmlDeviceValidateInforom(c.device());
  const bool corrupted = code == NVML_ERROR_CORRUPTED_INFOROM;
  if (corrupted || c.note("inforom_valid", code, Answer<int>{code, 0}.absent()))
    c.put("inforom_valid", "bool", corrupted ? 0 : 1);
}

std::string processName(const Nvml& nvml, unsigned pid) {
  char name[256] = {};
  const bool told = nvml->nvmlSystemGetProcessName(pid, name, sizeof name - 1) == NVML_SUCCESS;
  return "pid " + std::to_string(pid) + (told ? " (" + printable(name, 100) + ")" : "");
}

void readProcesses(GpuCollector& c) {
  const Nvml& nvml = c.nvml();
  std::vector<nvmlProcessInfo_t> processes(64);
  auto count = static_cast<unsigned>(processes.size());
  nvmlReturn_t code = NVML_ERROR_FUNCTION_NOT_FOUND;
  if (nvml->nvmlDeviceGetComputeRunningProcesses_v3 != nullptr)
    code = nvml->nvmlDeviceGetComputeRunningProcesses_v3(c.device(), &count, processes.data());
  const bool more = code == NVML_ERROR_INSUFFICIENT_SIZE;
  if (!more && !c.note("gpu_processes", code, Answer<int>{code, 0}.absent())) return;
  std::vector<std::string> names;
  for (size_t i = 0; !more && i < std::min<size_t>(count, 4); ++i)
    names.push_back(processName(nvml, processes[i].pid));
  if (names.size() < count) names.push_back(std::to_string(count - names.size()) + " others");
  c.put("gpu_processes", "count", count, join(names, ", "));
}

void readPlace(GpuCollector& c, const Root& root) {
  const std::string& address = c.gpu().pciAddress;
  if (const auto translates = iommuTranslates(root, address))
    c.put("iommu_translates", "bool", *translates ? 1 : 0);
  const std::vector<std::string> path = pciPath(root, address);
  std::vector<std::string> redirecting;
  for (size_t i = 1; i + 1 < path.size(); ++i) {
    const auto redirects = redirectsPeers(root, path[i]);
    if (!redirects.ok()) return c.put("acs_state", "text", 0, "not readable: " + redirects.error().text());
    if (*redirects) redirecting.push_back(path[i]);
  }
  if (path.size() > 2)
    c.put("acs_redirecting_bridges", "count", static_cast<double>(redirecting.size()),
          join(redirecting, ", "));
}

}  // namespace

void readGpuSetup(GpuCollector& collector, const Root& root) {
  readModes(collector);
  readLimits(collector);
  readEccPlaces(collector);
  readInforom(collector);
  readProcesses(collector);
  readPlace(collector, root);
}

}  // namespace muster::cuda
