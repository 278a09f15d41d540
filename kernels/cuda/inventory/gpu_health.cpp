// SPDX-License-Identifier: Apache-2.0
// Reads the health of one GPU.
#include "kernels/cuda/inventory/gpu_health.h"

#include "kernels/checks/fabric.h"
#include "kernels/cuda/inventory/fabric_info.h"
#include "kernels/cuda/inventory/nvlink.h"
#include "kernels/cuda/inventory/nvml/pci.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

std::string recoveryWords(unsigned action) {
  switch (action) {
    case NVML_GPU_RECOVERY_ACTION_GPU_RESET:
      return "reset the GPU";
    case NVML_GPU_RECOVERY_ACTION_NODE_REBOOT:
      return "reboot the node";
    case NVML_GPU_RECOVERY_ACTION_DRAIN_P2P:
      return "stop peer-to-peer work";
    case NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET:
      return "stop peer-to-peer work, then reset the GPU";
    case NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN:
      return "recover the IMEX domain";
    case NVML_GPU_RECOVERY_ACTION_BUS_RESET:
      return "reset the GPU's PCIe bus";
    case NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT:
      return "reboot the system";
    default:
      return "recovery action " + std::to_string(action);
  }
}

Answer<double> chipTemperature(const Nvml& nvml, nvmlDevice_t device) {
  Answer<nvmlTemperature_t> newer;
  newer.value = {NVML_STRUCT_VERSION(nvmlTemperature_t, 1), NVML_TEMPERATURE_GPU, 0};
  newer.code = nvml->nvmlDeviceGetTemperatureV == nullptr
                   ? NVML_ERROR_FUNCTION_NOT_FOUND
                   : nvml->nvmlDeviceGetTemperatureV(device, &newer.value);
  if (!newer.absent()) return {newer.code, static_cast<double>(newer.value.temperature)};
  const auto older = ask<unsigned>(nvml->nvmlDeviceGetTemperature, device, int{NVML_TEMPERATURE_GPU});
  return {older.code, static_cast<double>(older.value)};
}

/// Degrees that are left until the hardware slows the clocks down. Newer GPUs give both temperatures as
/// distances from their highest operating temperature (T.Limit in nvidia-smi).
Answer<double> slowdownMargin(const Nvml& nvml, nvmlDevice_t device, const Answer<double>& temperature) {
  Answer<nvmlMarginTemperature_t> margin;
  margin.value.version = NVML_STRUCT_VERSION(nvmlMarginTemperature_t, 1);
  margin.code = nvml->nvmlDeviceGetMarginTemperature == nullptr
                    ? NVML_ERROR_FUNCTION_NOT_FOUND
                    : nvml->nvmlDeviceGetMarginTemperature(device, &margin.value);
  const auto slowdown = readFields(nvml, device, {{NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT}}).front();
  if (margin.ok() && slowdown.ok()) {
    // Below that temperature, so negative, whatever type a driver gives it.
    const auto limit = static_cast<int32_t>(static_cast<int64_t>(slowdown.value));
    return {NVML_SUCCESS, static_cast<double>(margin.value.marginTemperature - limit)};
  }
  const auto limit = ask<unsigned>(nvml->nvmlDeviceGetTemperatureThreshold, device,
                                   int{NVML_TEMPERATURE_THRESHOLD_SLOWDOWN});
  // Not every GPU knows this threshold.
  if (limit.code == NVML_ERROR_INVALID_ARGUMENT || !temperature.ok()) return {NVML_ERROR_NOT_SUPPORTED, 0};
  return {limit.code, limit.value - temperature.value};
}

/// The load decides whether the PCIe link's generation says anything: an idle link slows down to save power.
double readClimate(GpuCollector& c) {
  const Nvml& nvml = c.nvml();
  const auto temperature = chipTemperature(nvml, c.device());
  c.number(reading::kTemperature, "degC", temperature);
  c.number(reading::kSlowdownMargin, "degC", slowdownMargin(nvml, c.device(), temperature));
  c.number(reading::kMemoryTemperature, "degC",
           readFields(nvml, c.device(), {{NVML_FI_DEV_MEMORY_TEMP}}).front());
  c.number(reading::kPower, "W", ask<unsigned>(nvml->nvmlDeviceGetPowerUsage, c.device()), 1e-3);
  c.number(reading::kClock, "Hz", ask<unsigned>(nvml->nvmlDeviceGetClockInfo, c.device(), int{NVML_CLOCK_SM}),
           1e6);
  const auto use = ask<nvmlUtilization_t>(nvml->nvmlDeviceGetUtilizationRates, c.device());
  if (!c.note(reading::kUtilization, use.code, use.absent())) return 1;
  const double busy = static_cast<double>(use.value.gpu) * 0.01;
  c.put(reading::kUtilization, "ratio", busy);
  return busy;
}

Answer<unsigned> retiredPages(const Nvml& nvml, nvmlDevice_t device) {
  Answer<unsigned> sum;
  for (const int cause : {NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
                          NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR}) {
    // With room for none, the call tells how many there are.
    unsigned count = 0;
    const nvmlReturn_t code = nvml->nvmlDeviceGetRetiredPages(device, cause, &count, nullptr);
    if (code != NVML_SUCCESS && code != NVML_ERROR_INSUFFICIENT_SIZE) return {code, 0};
    sum.value += count;
  }
  return sum;
}

/// How many of its memory's banks have how many of their spare rows left.
void readSpareRows(GpuCollector& c) {
  const auto banks =
      ask<nvmlRowRemapperHistogramValues_t>(c.nvml()->nvmlDeviceGetRowRemapperHistogram, c.device());
  if (!c.note("remap_banks", banks.code, banks.absent())) return;
  for (const auto& [left, count] : {std::pair{"all", banks.value.max},
                                    {"most", banks.value.high},
                                    {"some", banks.value.partial},
                                    {"few", banks.value.low},
                                    {"none", banks.value.none}})
    c.put("remap_banks", "count", count, "", {{"spare_rows", left}});
}

/// Ampere and later replace rows, earlier GPUs retire pages: both wait for a reset, and both run out of room.
void readRemaps(GpuCollector& c) {
  constexpr unsigned kMostPages = 64;  // "Dynamic Page Retirement", docs.nvidia.com/deploy
  const Nvml& nvml = c.nvml();
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  nvmlReturn_t code = NVML_ERROR_FUNCTION_NOT_FOUND;
  if (nvml->nvmlDeviceGetRemappedRows != nullptr)
    code = nvml->nvmlDeviceGetRemappedRows(c.device(), &corrected, &uncorrected, &pending, &failed);
  const bool absent = Answer<int>{code, 0}.absent();
  if (!absent) {
    if (!c.note("row remaps", code, false)) return;
    c.put(reading::kRowRemapPending, "bool", pending != 0 ? 1 : 0);
    c.put(reading::kRowRemapFailed, "bool", failed != 0 ? 1 : 0);
    c.put("remapped_rows", "count", corrected, "", {{"kind", "corrected"}});
    c.put("remapped_rows", "count", uncorrected, "", {{"kind", "uncorrected"}});
    return readSpareRows(c);
  }
  const auto waiting = readFields(nvml, c.device(), {{NVML_FI_DEV_RETIRED_PENDING}}).front();
  if (c.note(reading::kRowRemapPending, waiting.code, waiting.absent()))
    c.put(reading::kRowRemapPending, "bool", waiting.value != 0 ? 1 : 0);
  const auto pages = retiredPages(nvml, c.device());
  if (!c.note(reading::kRowRemapFailed, pages.code, pages.absent())) return;
  c.put(reading::kRowRemapFailed, "bool", pages.value >= kMostPages ? 1 : 0);
  c.put("retired_pages", "count", pages.value);
}

/// By place, for each has its own limit; all together where the driver tells of no place.
void readCorrected(GpuCollector& c) {
  const Nvml& nvml = c.nvml();
  const auto inPlace = [&](int place) {
    return ask<unsigned long long>(nvml->nvmlDeviceGetMemoryErrorCounter, c.device(),
                                   int{NVML_MEMORY_ERROR_TYPE_CORRECTED}, int{NVML_VOLATILE_ECC}, int{place});
  };
  const auto dram = inPlace(NVML_MEMORY_LOCATION_DRAM), sram = inPlace(NVML_MEMORY_LOCATION_SRAM);
  if (dram.absent() && sram.absent())
    return c.number(reading::kEccCorrected, "count",
                    ask<unsigned long long>(nvml->nvmlDeviceGetTotalEccErrors, c.device(),
                                            int{NVML_MEMORY_ERROR_TYPE_CORRECTED}, int{NVML_VOLATILE_ECC}));
  c.number(reading::kEccCorrected, "count", dram, 1, {{"memory", "dram"}});
  c.number(reading::kEccCorrected, "count", sram, 1, {{"memory", "sram"}});
}

void readMemoryErrors(GpuCollector& c) {
  readCorrected(c);
  c.number(reading::kEccUncorrected, "count",
           ask<unsigned long long>(c.nvml()->nvmlDeviceGetTotalEccErrors, c.device(),
                                   int{NVML_MEMORY_ERROR_TYPE_UNCORRECTED}, int{NVML_VOLATILE_ECC}));
  readRemaps(c);
}

void readPcie(GpuCollector& c, const Root& root, bool busy) {
  const Nvml& nvml = c.nvml();
  if (const auto aer = readAer(root, c.gpu().pciAddress)) {
    c.put("pcie_errors_uncorrected", "count", static_cast<double>(aer->uncorrectable));
    c.put("pcie_errors_corrected", "count", static_cast<double>(aer->correctable));
  }
  c.number(reading::kPcieReplay, "count", ask<unsigned>(nvml->nvmlDeviceGetPcieReplayCounter, c.device()));
  c.number("pcie_link_width", "count", ask<unsigned>(nvml->nvmlDeviceGetCurrPcieLinkWidth, c.device()));
  if (busy)
    c.number("pcie_link_generation", "count",
             ask<unsigned>(nvml->nvmlDeviceGetCurrPcieLinkGeneration, c.device()));
}

std::string listed(const std::vector<int>& links) {
  std::vector<std::string> texts;
  for (const int link : links) texts.push_back(std::to_string(link));
  return join(texts, ", ");
}

void readC2cState(GpuCollector& c) {
  const auto down = readC2cLinksDown(c.nvml(), c.device());
  if (c.note("c2c_links_down", down.code, down.absent()))
    c.put("c2c_links_down", "count", static_cast<double>(down.value.size()), listed(down.value));
}

void readNvLinkState(GpuCollector& c) {
  const auto links = readNvLinks(c.nvml(), c.device());
  if (!c.note("nvlinks_active", links.code, links.absent())) return;
  c.put("nvlinks_active", "count", links.value.active, listed(links.value.inactive));
  const auto errors = readNvLinkErrors(c.nvml(), c.device(), links.value.present);
  for (const auto& [name, count] :
       {std::pair{reading::kNvlinkErrors, errors.repeated}, {reading::kNvlinkCrcErrors, errors.crc}})
    if (c.note(name, count.code, count.absent())) c.put(name, "count", count.value.total, count.value.links);
  const auto& speed = links.value.bytesPerSecond;
  if (c.note("nvlink_speed", speed.code, speed.absent())) c.put("nvlink_speed", "B/s", speed.value);
}

/// The fabric manager has to admit a GPU to the NVSwitches before CUDA can use it, and the way to its peers
/// has to be as wide as it should be.
void readFabric(GpuCollector& c) {
  const Nvml& nvml = c.nvml();
  const auto fabric = readFabricInfo(nvml, c.device());
  if (!c.note("fabric_ready", fabric.code, fabric.absent())) return;
  const unsigned char state = fabric.value.state;
  if (state == NVML_GPU_FABRIC_STATE_NOT_SUPPORTED) {
    (void)c.note("fabric_ready", NVML_ERROR_NOT_SUPPORTED, true);
    return;
  }
  const bool completed = state == NVML_GPU_FABRIC_STATE_COMPLETED;
  const bool ready = completed && fabric.value.status == NVML_SUCCESS;
  std::string text;
  if (!ready)
    text = completed                                    ? nvml.words(fabric.value.status)
           : state == NVML_GPU_FABRIC_STATE_IN_PROGRESS ? "registration is under way"
                                                        : "registration has not started";
  c.put("fabric_ready", "bool", ready ? 1 : 0, text);
  const FabricHealth health{fabric.value.healthMask, fabric.value.healthSummary};
  if (health.known())
    c.put(reading::kFabricHealthy, "bool", health.troubles().empty() ? 1 : 0, join(health.troubles(), ", "));
}

/// What the driver asks for before the GPU can be used again.
void readRecoveryAction(GpuCollector& c) {
  const auto action = readFields(c.nvml(), c.device(), {{NVML_FI_DEV_GET_GPU_RECOVERY_ACTION}}).front();
  if (!c.note("recovery_needed", action.code, action.absent())) return;
  const auto asked = static_cast<unsigned>(action.value);
  c.put("recovery_needed", "bool", asked == NVML_GPU_RECOVERY_ACTION_NONE ? 0 : 1,
        asked == NVML_GPU_RECOVERY_ACTION_NONE ? "" : recoveryWords(asked));
}

}  // namespace

void readGpuHealth(GpuCollector& collector, const Root& root) {
  const double utilization = readClimate(collector);
  readMemoryErrors(collector);
  readPcie(collector, root, utilization > 0.1);
  readNvLinkState(collector);
  readC2cState(collector);
  readFabric(collector);
  readRecoveryAction(collector);
}

}  // namespace muster::cuda
